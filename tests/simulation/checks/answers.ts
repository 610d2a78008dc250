// Answers: an answer was durable before it was sent, is given again to a client that asks again, was carried out once,
// and its effect is there at the end.

import { type Attempt, type Call, isFinal, type Reply } from "../history.ts";
import { isModelled } from "./linear.ts";
import type { Turn } from "../recorder.ts";
import { isGone } from "../traffic.ts";
import type { Checker, Scene } from "../watch.ts";

const DAY_MS = 24 * 3_600_000;

/** Compares every answer with what became durable. */
export function answersChecker(): Checker {
  return {
    name: "answers",
    atEnd(scene) {
      const byKey = Map.groupBy(scene.calls.filter(({ key }) => key !== null), ({ key }) => key as string);
      for (const call of scene.calls) {
        for (const attempt of call.attempts) checkDurable(call, attempt);
        if (call.answer !== null) checkKept(call, call.answer, scene);
      }
      // The first answers of an erased user are erased, too.
      for (const calls of byKey.values()) if (calls.every(isModelled)) checkOnce(calls);
    },
  };
}

/** An answer leaves after its turn, and after the changes of its turn are durable. */
function checkDurable(call: Call, { turns, reply, repliedAt, sentAt }: Attempt): void {
  if (reply === null || repliedAt === null || !isFinal(reply)) return;
  for (const { order, decidedAt, batch } of turns) {
    if (order < sentAt || decidedAt > repliedAt) throw new Error(`call ${call.no} ran outside of its time`);
    if (batch === null || batch.durableAt !== null && batch.durableAt < repliedAt) continue;
    throw new Error(`call ${call.no} (${call.request.op}) was answered before its changes were durable`);
  }
}

/** Calls under one key are one call: done once, and answered alike. */
function checkOnce(calls: readonly Call[]): void {
  const attempts = calls.flatMap((call) => call.attempts.map((attempt) => ({ call, attempt })));
  const done = attempts.flatMap(({ call, attempt }) => {
    const turn = attempt.turns.at(-1);
    return turn !== undefined && writes(turn) ? [{ call, turn }] : [];
  });
  const [first, ...more] = done.sort((a, b) => a.turn.order - b.turn.order);
  for (const { call, turn } of more) {
    // A first answer is forgotten after a day.
    if (first === undefined || turn.lookedAtMs - first.turn.lookedAtMs >= DAY_MS) continue;
    throw new Error(`call ${call.no} (${call.request.op}) was done twice under ${call.key}`);
  }
  for (const { call, attempt } of attempts) {
    if (attempt.reply?.isReplayed !== true) continue;
    const same = attempts.filter((other) => asText(other.call) === asText(call)).map((other) =>
      other.attempt
    );
    checkReplay(call, same, attempt.reply);
  }
}

function asText({ request }: Call): string {
  return JSON.stringify(request);
}

/** A repeated answer was given before, to the same request. */
function checkReplay(
  { no, request: { op } }: Call,
  attempts: readonly Attempt[],
  { body, model }: Reply,
): void {
  const own = attempts.filter(({ reply }) => reply?.isReplayed === false && isFinal(reply));
  if (own.some(({ reply }) => reply?.body === body)) return;
  // Where the process could not say it, it had written it down.
  const isUntold = ({ reply, turns }: Attempt) =>
    (reply === null || !isFinal(reply)) && (turns.length > 0 || op === "alias" || op === "testClock");
  if (attempts.some(isUntold) || model.status !== 200 && own.length === 0) return;
  throw new Error(`call ${no} (${op}) was given an answer that is not its own`);
}

function writes({ batch, changes }: Turn): boolean {
  return batch !== null && batch.durableAt !== null && changes.some(({ table }) => TOLD.has(table));
}

/** Tables whose rows a call writes for itself; what fell due before it may be written by any call. */
const TOLD: ReadonlySet<string> = new Set(["events", "merges", "idempotency"]);

/** What a 200 answer names is there. */
function checkKept({ no, request: { op, input } }: Call, { status, model }: Reply, scene: Scene): void {
  const { server: { tables } } = scene;
  if (status !== 200 || [input["userId"], input["from"], input["distinctId"]].some(isGone)) return;
  const data = model.data ?? {};
  const must = (table: string, id: unknown, isThere: (status: string) => boolean = () => true) => {
    const [row] = tables.list(table, (each) => each.id === id);
    if (row !== undefined && isThere(String(row.status))) return;
    throw new Error(
      `call ${no} (${op}) was answered with ${id}, which is ${row === undefined ? "not there" : row.status}`,
    );
  };
  if (op === "reserve" && data["reservationId"] !== undefined) must("reservations", data["reservationId"]);
  if (op === "commit") {
    must("reservations", input["reservationId"], (state) => state === "committed");
    must("events", data["eventId"]);
  }
  if (op === "release") must("reservations", input["reservationId"], (state) => state === "released");
  if (op === "track") must("events", data["eventId"]);
  if (op === "subscribe") must("subscriptions", data["subscriptionId"]);
  if (op === "grant") {
    for (const { balanceId } of data["balances"] as { balanceId: string }[]) {
      must("credit_balances", balanceId);
    }
  }
  if (op === "alias" && data["mergeId"] !== null) must("merges", data["mergeId"]);
}
