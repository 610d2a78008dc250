// Runs: the tasks of agents. A read settles first what is due of the user, so that it shows no lapsed reservation as held.

import type { Actor } from "../../actors/actor.ts";
import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import type { RunAnswer } from "../../src/domain/accounts/run.ts";
import { hasEnded, isForgotten, type Run } from "../../src/domain/state/run.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import {
  type ListedRun,
  listRuns,
  readRun,
  readRunsCursor,
  runsCursor,
} from "../../src/storage/queries/runs.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/runs.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showRunLimit } from "./shown_records.ts";

interface RunsWorld extends TurnWorld {
  readonly term: Pick<Term, "flush"> & {
    readonly directory: Pick<Directory, "runById" | "runByKey" | "actorOf" | "actorByKey">;
  };
  readonly database: Parameters<typeof listRuns>[0];
}

const endpoint = endpointsOn<RunsWorld>();

export const RUNS: readonly Endpoint<RunsWorld>[] = [
  endpoint(contract.createRun, (request) => {
    const { userId, limits, name, ttlSeconds, parentRunId, metadata } = request.input;
    const command = {
      limits: limits.map(({ unit, event, quota }) => ({ unit, event: event ?? "*", quota: amountOf(quota) })),
      name: name ?? null,
      ttlMs: Math.round((ttlSeconds ?? REQUEST_LIMITS.runTtlSeconds) * 1000),
      parentRunId: parentRunId ?? null,
      metadata: metadata ?? null,
    };
    const call = { name: "openRun", input: command, needs: runNeeded(parentRunId) } as const;
    return runTurn(request, { userId }, call, showRun);
  }),
  endpoint(contract.getRun, async ({ world, caller: { realm }, input: { runId } }) => {
    const owner = ownerOf("run", runId);
    const actor = owner === null ? null : await world.term.directory.actorByKey(realm.realm, owner);
    const keys = actor === null ? [] : await settledKeys(world, actor, realm);
    const found = await readRun(world.database, keys, runId);
    const now = realm.now();
    if (found === null || isForgotten(found.run, now)) throw new Refused("not_found", "Run not found");
    return success(showDetail(found, now));
  }),
  endpoint(contract.listRuns, async ({ world, caller: { realm }, input }) => {
    const { userId, status = null, cursor, limit = REQUEST_LIMITS.runsLimit } = input;
    const after = cursor === undefined ? null : readRunsCursor(cursor);
    if (cursor !== undefined && after === null) {
      throw invalidMember("cursor", "is not a cursor of this list");
    }
    const actor = await world.term.directory.actorOf(realm.realm, userId);
    const keys = await settledKeys(world, actor, realm);
    const now = realm.now();
    const page = { keys, now, status, after, limit: limit + 1 };
    const found = await listRuns(world.database, page);
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    const next = found.length > limit && last !== undefined ? runsCursor(last.run) : null;
    return success({ runs: shown.map((each) => showDetail(each, now)), cursor: next });
  }),
  endpoint(contract.endRun, (request) => {
    const { runId, reason } = request.input;
    const command = { runId, reason: reason ?? null };
    return runTurn(request, { runId }, { name: "endRun", input: command }, showRun);
  }),
];

/** The run that a command names; undefined for none. */
export function runNeeded(runId: string | null | undefined): { readonly runId: string } | undefined {
  return runId === null || runId === undefined ? undefined : { runId };
}

/** Settles what is due of a user, waits for the drain, and returns the numbers of the user and its aliases. */
async function settledKeys({ term }: RunsWorld, actor: Actor, realm: Parameters<Actor["settle"]>[0]) {
  await term.directory.runById(actor.state.user.id, { realm, name: "settle", input: {} });
  await term.flush();
  return actor.state.keys;
}

/** A run as the calls that change it answer. */
export function showRun({ userId, run, now }: RunAnswer): DataOf<typeof contract.createRun> {
  const { id, around, name, limits, createdAt, expiresAt, endedAt, reason } = run;
  const isOver = hasEnded(run, now);
  return {
    runId: id,
    userId,
    parentRunId: around[0] ?? null,
    name,
    status: isOver ? "ended" : "active",
    createdAt: timeText(createdAt),
    expiresAt: timeText(expiresAt),
    endedAt: timeTextOrNull(isOver ? endedAt ?? expiresAt : null),
    reason,
    limits: limits.map(showRunLimit),
  };
}

/** A run with its metadata. */
export function showDetail({ run, userId }: ListedRun, now: Millis): DataOf<typeof contract.getRun> {
  const { metadata }: Pick<Run, "metadata"> = run;
  return { ...showRun({ run, userId, now }), metadata: metadata === null ? null : JSON.parse(metadata) };
}
