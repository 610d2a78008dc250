// Batches: events, and calls of five kinds. The status of the request depends on none of them.

import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { RequestCounts, RouteCounts } from "../../src/process/counts/request_counts.ts";
import { REQUEST_LIMITS, RUNTIME_LIMITS } from "../../src/process/limits.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { batch, trackBatch } from "../contract/batch.ts";
import type { DataOf } from "../contract/definition.ts";
import { canUse, commit, release, reserve, track } from "../contract/metering.ts";
import type { WrittenAnswer } from "../http/answer.ts";
import { valueHash } from "../http/canonical.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember, RateLimited } from "../http/errors.ts";
import { elementOf, type Members } from "../http/json_body.ts";
import { countCall } from "../http/rate_limit.ts";
import { retryAfterFor } from "../http/respond.ts";
import { partOf, storedKey } from "../http/stored_keys.ts";
import { joined, warningsAbout } from "../http/unknown_members.ts";
import { askCanUse, askCommit, askRelease, askReserve, askTrack } from "./metering.ts";
import { decideTogether } from "./together.ts";
import {
  type Form,
  type Kind,
  kindOf,
  type Results,
  type TogetherRequest,
  type TogetherWorld,
} from "./together_work.ts";

/** What batches need of the running service. */
export interface BatchWorld extends TogetherWorld {
  readonly counts: { readonly requests: Pick<RequestCounts, "of"> };
}

type Request = TogetherRequest<BatchWorld>;

const endpoint = endpointsOn<BatchWorld>();

export const BATCHES: readonly Endpoint<BatchWorld>[] = [
  endpoint(trackBatch, async (request) => {
    const { events } = request.input;
    return await writtenBatch(request, await decideTogether(request, events, EVENTS));
  }),
  endpoint(batch, async (request) => {
    const { calls } = request.input;
    const results = await decideTogether(request, calls, CALLS);
    const { realm } = request.caller.realm;
    const keyPrefix = JSON.stringify(request.world.term.idempotency.keyPrefixOf(realm));
    return await writtenBatch(request, results, `,"keyPrefix":${keyPrefix}`);
  }),
];

/** Each element is a body of track, and each result its answer. */
const EVENTS: Form<BatchWorld> = {
  read: (request, sent, place) => {
    countCall(request.world, request.caller);
    const { idempotencyKey, members } = splitElement(sent, "event");
    return { kind: TRACK, members, call: idempotentOf(request, TRACK, { idempotencyKey, members }, place) };
  },
  textOf: (_request, _kind, { body }) => body,
  undecidedMs: null,
};

/** Each element names its call, and each result has its status. */
const CALLS: Form<BatchWorld> = {
  read: (request, sent, place) => {
    countCall(request.world, request.caller);
    const { call: name, idempotencyKey, members } = splitElement(sent, "call");
    const kind = typeof name === "string" ? KINDS.get(name) : undefined;
    if (kind === undefined) throw invalidMember("call", `must be one of ${KIND_NAMES}`);
    return { kind, members, call: idempotentOf(request, kind, { idempotencyKey, members }, place) };
  },
  textOf: (request, kind, answer, thrown) => {
    if (kind !== null) count(request.world, kind, answer);
    return resultText(answer, thrown);
  },
  get undecidedMs() {
    return RUNTIME_LIMITS.batchUndecidedMs;
  },
};

const TRACK = kindOf(track, askTrack);

/** The calls that a batch may have, by their names. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  kindOf(reserve, askReserve),
  kindOf(commit, askCommit),
  kindOf(release, askRelease),
  kindOf(canUse, askCanUse),
  TRACK,
].map((kind) => [kind.definition.path.slice("/v1/".length), kind]));

const KIND_NAMES = [...KINDS.keys()].map((name) => JSON.stringify(name)).join(", ");

/** An element of a batch: the body of its call, and what is beside it. */
interface Element {
  readonly call: unknown;
  readonly idempotencyKey: unknown;
  readonly members: Members;
}

/** Splits an element. @param what its name in a refusal */
function splitElement(sent: unknown, what: string): Element {
  const { call, idempotencyKey, ...members } = elementOf(sent, what);
  return { call, idempotencyKey, members };
}

/**
 * Returns what identifies a call; null for one without a key. In a batch with a key a call without one is a part of the batch: a
 * retry repeats none of those that became durable.
 */
function idempotentOf(
  { caller, idempotent }: Request,
  { definition: { path } }: Kind,
  { idempotencyKey: sent, members }: Pick<Element, "idempotencyKey" | "members">,
  place: number,
): IdempotentCall | null {
  if (sent === undefined || sent === null) return idempotent === null ? null : partOf(idempotent, place);
  // A header has no blanks at its ends, and the same call may come alone.
  const key = typeof sent === "string" ? sent.replaceAll(BLANK_ENDS, "") : "";
  if (key.length < 1 || key.length > REQUEST_LIMITS.idempotencyKeyLengthMax) {
    throw invalidMember("idempotencyKey", "must be a string of 1 to 200 characters");
  }
  return keyed(caller, key, valueHash(path, members));
}

const BLANK_ENDS = /^[\t\n\r ]+|[\t\n\r ]+$/g;

function keyed({ realm, key: apiKey }: Caller, key: string, requestHash: string): IdempotentCall {
  return { realm: realm.realm, key: storedKey(apiKey, key), requestHash };
}

/** Counts a call as a request of its own route. */
function count({ counts }: BatchWorld, kind: Kind, { code, isReplayed }: WrittenAnswer): void {
  const route = routeOf(counts.requests, kind);
  route.starts();
  route.ends(code, 0);
  if (isReplayed === true) route.replayed += 1;
}

/** The counts of the routes of kinds. To make the name of a route for each call would cost more than to count it. */
const ROUTES = new WeakMap<object, Map<Kind, RouteCounts>>();

function routeOf(requests: Pick<RequestCounts, "of">, kind: Kind): RouteCounts {
  let routes = ROUTES.get(requests);
  if (routes === undefined) ROUTES.set(requests, routes = new Map());
  let route = routes.get(kind);
  if (route === undefined) {
    const { method, path } = kind.definition;
    routes.set(kind, route = requests.of(method, `/api${path}`));
  }
  return route;
}

function resultText(answer: WrittenAnswer, thrown: unknown): string {
  const { status, body, isReplayed } = answer;
  const replayed = isReplayed === true ? ',"replayed":true' : "";
  if (status === 200) return `{"status":200,${body.slice(1, -1)}${replayed}}`;
  const seconds = thrown instanceof RateLimited ? thrown.retryAfterS : retryAfterFor(answer);
  const retry = seconds === null ? "" : `,"retryAfterSeconds":${seconds}`;
  return `{"status":${status},${body.slice(1, -1)}${replayed}${retry}}`;
}

type Batched = DataOf<typeof trackBatch>;
const RESULTS: keyof Batched = "results";
const WARNINGS: keyof Batched = "warnings";

/**
 * Returns the answer of a batch. Under a key of its own it is kept whole, unless one of its calls was not decided: a retry
 * then decides call by call.
 */
async function writtenBatch<Data>(
  { world, input, idempotent }: Request,
  { text, isPartial }: Results,
  more = "",
): Promise<WrittenAnswer<Data>> {
  const warnings = joined(warningsAbout(input as object));
  const told = warnings === undefined ? "" : `,"${WARNINGS}":${JSON.stringify(warnings)}`;
  const body = `{"ok":true,"data":{"${RESULTS}":[${text}]${more}${told}}}`;
  if (idempotent !== null && !isPartial) {
    await world.term.keepAnswer({ ...idempotent, status: 200, body }, null);
  }
  return { code: "ok", status: 200, body };
}
