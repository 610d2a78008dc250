// The form of calls and replies between processes, the same for every kind of call.

import { Unavailable } from "../../actors/port.ts";
import { RateLimited, Refused } from "./errors.ts";
import type { Reply, StreamedReply } from "../../src/channel/hub.ts";
import { checkInput } from "./input.ts";
import { write, type WrittenAnswer } from "./answer.ts";
import type { Members } from "./json_body.ts";
import type { CallTarget, CheckedCall, DispatchWorld, KeyedCall, KeyedTarget, Outcome } from "./call.ts";
import type { KeylessEndpoint } from "./endpoint_types.ts";
import { refusalOf } from "./respond.ts";

/** A call on the channel. */
export type Message = readonly [
  id: string,
  registryVersion: number,
  requestId: string,
  members: Members,
  /** Null for a call on behalf of no caller. */
  sender: Sender | null,
  /** Whether the receiver answers for its own cells alone. */
  isPart: boolean,
  /** The person who makes the write, for a call without a caller. */
  who?: string | undefined,
];

/** On whose behalf a call is made, and what only such a call has. */
type Sender = readonly [
  keyId: string,
  endUserId: string | null,
  isCounted: boolean,
  idempotent: readonly [key: string, requestHash: string] | null,
  url: string,
];

/** The head of a reply. The body is the text of the answer, or a stream. */
export type ReplyHead = readonly [
  status: number,
  code: WrittenAnswer["code"],
  isReplayed: boolean,
  /** Not 0 where the rate limit refused the call. */
  retryAfterS: number,
  /** The cells that the answer covers, where it is a part. */
  cells?: readonly number[],
  /** The headers of a response without the envelope. */
  headers?: Readonly<Record<string, string>>,
  /** What the caller's later idempotency keys may begin with. */
  keyPrefix?: string | undefined,
];

/** The message of a call. */
export function messageOf<World extends DispatchWorld>(
  { registry }: World,
  call: CheckedCall<World>,
  requestId: string,
  isPart = false,
): Message {
  const message = [call.target.id, registry.version, requestId, call.members] as const;
  if (call.caller !== null) return [...message, senderOf(call), isPart];
  return call.who === undefined ? [...message, null, isPart] : [...message, null, isPart, call.who];
}

function senderOf(
  { target, caller, endUser, isCounted, idempotent, url }: KeyedCall<never>,
): Sender {
  return [
    caller.key.keyId,
    endUser?.userId ?? null,
    isCounted,
    idempotent === null ? null : [idempotent.key, idempotent.requestHash],
    // Only an answer with a link needs the address, which would be a good part of a short call.
    target.answersToken === true ? url : "",
  ];
}

/**
 * The call of a message. Key and app come from this process's own registry.
 *
 * @throws Refused when the key was revoked, or the input does not fit
 */
export function callOf<World extends DispatchWorld>(
  { registry }: World,
  targets: ReadonlyMap<string, CallTarget<World>>,
  [id, , , members, sender, , who]: Message,
): CheckedCall<World> {
  const target = targets.get(id);
  if (target === undefined) throw new Error(`No call has the id "${id}"`);
  const input = inputOf(target, members);
  if (sender === null) return { target: target as KeylessEndpoint<World>, caller: null, members, input, who };
  const [keyId, endUserId, isCounted, kept, url] = sender;
  const caller = registry.callerById(keyId);
  // The sender may not know yet that another store serves the workspace.
  if (caller === null && registry.heirs.size > 0) throw new Unavailable("Another store may serve the caller");
  if (caller === null) throw new Refused("invalid_key", "The API key is missing, malformed or revoked");
  const idempotent = kept === null ? null : { realm: caller.realm.realm, key: kept[0], requestHash: kept[1] };
  const endUser = endUserId === null ? null : { userId: endUserId };
  const by = { caller, endUser, url, idempotent, isCounted };
  return { target: target as KeyedTarget<World>, members, input, ...by };
}

function inputOf(target: CallTarget<never>, members: Members): unknown {
  if (!("input" in target)) return members;
  return target.input === null ? null : checkInput(target, members);
}

/**
 * The reply with an outcome.
 *
 * @param cells those that the answer covers, where it is a part
 */
export function replyOf(outcome: Outcome, cells?: readonly number[]): Reply | StreamedReply {
  if (outcome instanceof Response) {
    const headers = Object.fromEntries(outcome.headers);
    return { head: [outcome.status, "ok", false, 0, [], headers] satisfies ReplyHead, body: outcome.body };
  }
  const { status, code, body, isReplayed = false, keyPrefix } = write(outcome);
  const head: ReplyHead = [status, code, isReplayed, 0];
  if (keyPrefix !== undefined) return { head: [...head, cells ?? [], {}, keyPrefix], body };
  return { head: cells === undefined ? head : [...head, cells], body };
}

/** The reply with the refusal of what a call threw. */
export function refusalReply(requestId: string, thrown: unknown): Reply {
  const { status, code, body } = write({ ok: false, error: refusalOf(requestId, thrown) });
  const retryAfterS = thrown instanceof RateLimited ? thrown.retryAfterS : 0;
  return { head: [status, code, false, retryAfterS] satisfies ReplyHead, body };
}

/**
 * The outcome in a reply.
 *
 * @throws RateLimited, also later, when a share at the owner was full
 */
export function outcomeOf(
  { head, body }: Reply | StreamedReply,
  requestId: string,
): Outcome | Promise<Outcome> {
  const [status, code, isReplayed, retryAfterS, , headers = {}, keyPrefix] = head as ReplyHead;
  const outcome = (text: string): Outcome => {
    if (retryAfterS > 0) throw new RateLimited(retryAfterS, JSON.parse(text).error.message);
    return { status, code, isReplayed, keyPrefix, requestId, body: text };
  };
  if (typeof body === "string") return outcome(body);
  if (code === "ok") return new Response(body, { status, headers });
  return new Response(body).text().then(outcome);
}
