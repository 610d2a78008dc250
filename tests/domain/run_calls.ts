// Calls of runs of a system made of the pure domain.

import { showDetail } from "../../routes/calls/runs.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { hasEnded, isForgotten } from "../../src/domain/state/run.ts";
import type { ModelReply, ModelRequest } from "../model/document.ts";
import type { DecideSystem } from "./decide_system.ts";
import { replyOf, SHOW } from "./wire_answer.ts";
import { openRunOf, textOrNull, userOf } from "./wire_input.ts";

const NOT_FOUND: ModelReply = { status: 404, code: "not_found" };

/** Answers a call of runs at a moment. */
export function answerRuns(system: DecideSystem, { op, input }: ModelRequest, now: Millis): ModelReply {
  if (op === "createRun") {
    return system.ask(userOf(input), "openRun", openRunOf(input), now, SHOW.openRun);
  }
  if (op === "listRuns") return listRuns(system, userOf(input), input["status"], now);
  const runId = String(input["runId"]);
  const owner = ownerOf("run", runId);
  const userId = owner === null ? undefined : system.nameOf(owner);
  if (userId === undefined) return NOT_FOUND;
  if (op === "endRun") {
    const reason = textOrNull(input["reason"]);
    return system.ask(userId, "endRun", { runId, reason }, now, SHOW.endRun);
  }
  const run = runsOf(system, userId, now).find(({ id }) => id === runId);
  return run === undefined ? NOT_FOUND : replyOf(
    { ok: true, answer: run },
    (found) => showDetail({ run: found, userId: system.canonicalOf(userId) }, now),
    system.catalog,
  );
}

function listRuns(system: DecideSystem, userId: string, status: unknown, now: Millis): ModelReply {
  const found = runsOf(system, userId, now)
    .filter((run) => status === undefined || (status === "ended") === hasEnded(run, now))
    .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  const shown = found.slice(0, 100).map((run) =>
    showDetail({ run, userId: system.canonicalOf(userId) }, now)
  );
  const answer = { runs: shown, cursor: found.length > 100 ? "next" : null };
  return replyOf({ ok: true, answer }, (list) => list, system.catalog);
}

/** The runs of a user in the tables, after what was due. */
function runsOf(system: DecideSystem, userId: string, now: Millis) {
  system.run(userId, "settle", {}, now);
  const { keys } = system.stateOf(userId, now);
  return keys.flatMap((key) => system.tables.runs(key)).filter((run) => !isForgotten(run, now));
}
