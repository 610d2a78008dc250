// Linearizability: there is one order of all calls, in which each takes effect between its sending and its answer, and
// in which the independent model gives every answer that was given. The order in which turns decided is tried first;
// where it does not explain an answer, the call is tried at every other place that its times allow. A call
// without durable changes did not happen; a call that lost only its answer did happen. In the order of turns the model also
// predicts messages: those recorded for the webhook that wants everything are exactly these.

import type { IdempotencyRow } from "../../../actors/port.ts";
import { compare } from "../../model/compare.ts";
import { type ModelReply, type ModelRequest, replyFromWire } from "../../model/document.ts";
import type { Recorded } from "../../model/messages.ts";
import { Model } from "../../model/model.ts";
import { isAtCap } from "./caps.ts";
import { type Attempt, type Call, isFinal, isOfModel } from "../history.ts";
import type { Tenant } from "../tenants.ts";
import { isUnmodelled } from "../traffic.ts";
import type { Checker, Scene } from "../watch.ts";

/** Something that happened: a call's execution, with the moments between which it did. */
interface Entry {
  readonly call: Call;
  readonly decidedAt: number;
  readonly now: number;
  readonly from: number;
  readonly until: number;
  readonly reply: ModelReply | undefined;
  readonly isDurable: boolean;
}

/** Where an order stops to explain the answers. */
interface Difference {
  readonly call: Call;
  readonly place: number;
  readonly differences: readonly string[];
}

/** Orders that are tried before a difference counts as one. */
const ORDERS_MAX = 60;

/** Explains every answer by one order of calls. */
export function linearChecker(): Checker {
  return {
    name: "linear",
    atEnd(scene) {
      const { calls, tenants } = scene;
      const byTenant = Map.groupBy(calls.filter(isModelled), ({ tenant }) => tenant);
      for (const tenant of tenants) explain(tenant, byTenant.get(tenant) ?? [], scene);
    },
  };
}

/** Workspaces share nothing, so each has an order of its own. */
function explain(tenant: Tenant, calls: readonly Call[], scene: Scene): void {
  const { catalog, caps, webhooks } = tenant;
  const entries = placed(calls.flatMap(entriesOf)).sort(byDecision);
  const newModel = () => new Model(catalog, { ...caps, operationCap: null, isConcurrent: true });
  const model = newModel();
  model.listen(webhooks.slice(0, 1).map(({ webhookId, events }) => ({ webhookId, events: [...events] })));
  if (replay(entries, model) === null) return checkTold(tenant, model, scene);
  const found = search(entries, newModel);
  if (found === null) return;
  const { call } = found;
  const { op, input } = call.request;
  throw new Error([`call ${call.no} ${op} ${JSON.stringify(input)}`, ...found.differences].join("\n"));
}

/** The recorded messages are the predicted ones, unless the webhook was disabled for a while. */
function checkTold({ caps, realm, webhooks: [first] }: Tenant, model: Model, scene: Scene): void {
  if (first === undefined) return;
  const { server: { tables }, expected, sweptAtMs } = scene;
  const [row] = tables.list("webhooks", ({ webhookId }) => webhookId === first.webhookId);
  if (row?.changedIn !== 0) return;
  const recorded = expected.list(
    "webhook_messages",
    (each) => each.webhook_id === first.webhookId && !scene.isUnmodelled(each.user_key as number),
  );
  const differences = model.take(recorded.map(({ webhook_id: webhookId, body }): Recorded => ({
    webhookId: webhookId as string,
    ...JSON.parse(body as string),
  })));
  const [{ clockOffsetMs = 0 } = {}] = tables.list("realms", (each) => each.realm === realm);
  differences.push(...model.missing(sweptAtMs + Number(clockOffsetMs)));
  if (differences.length > 0) {
    throw new Error(
      `what ${first.webhookId} was sent, mode ${caps.mode}:\n${differences.slice(0, 5).join("\n")}`,
    );
  }
}

/** Whether the model can be asked about a call. */
export function isModelled({ request, tenant }: Call): boolean {
  const { input } = request;
  return !tenant.isCanary && isOfModel(request) &&
    !["userId", "from", "to"].some((name) => isUnmodelled(input[name]));
}

/** The executions of a call that count: those that were answered, and those with durable changes. */
function entriesOf(call: Call): Entry[] {
  return call.attempts.flatMap((attempt) => {
    const { reply, sentAt } = attempt;
    const turn = attempt.turns.at(-1);
    // A refusal at the cap changes nothing; `caps` checks whether it was right.
    if (isAtCap(attempt)) return [];
    const isAnswer = reply !== null && isFinal(reply) && !reply.isReplayed &&
      reply.model.code !== "idempotency_conflict";
    const isDurable = turn?.batch != null && turn.batch.durableAt !== null;
    if (!isAnswer && !isDurable) return [];
    // A process that answered "unknown" may have passed the call on, and the call may have run since.
    const answeredAt = isAnswer ? attempt.repliedAt ?? Infinity : Infinity;
    // What was answered without a turn rests on what cannot change any more.
    if (turn === undefined) return [];
    const { decidedAt, now } = turn;
    return [{
      call,
      decidedAt,
      now,
      from: sentAt,
      until: answeredAt,
      reply: firstAnswer(call, attempt),
      isDurable,
    }];
  });
}

/**
 * Moves pairs that were answered without a merge to the end of their times. Such a call may have looked at the clock for a
 * merge that it then had to begin again, as a change of the tree or because a user had left memory; its answer is of the
 * later time, and says nothing of either.
 */
function placed(entries: readonly Entry[]): Entry[] {
  return entries.map((entry) => {
    const { call: { request: { op } }, reply, until, isDurable } = entry;
    const isAnswered = reply !== undefined &&
      (reply.status !== 200 || reply.data?.["alreadyMerged"] === true);
    if (op !== "alias" || isDurable || !isAnswered) return entry;
    const before = entries.filter(({ decidedAt }) => decidedAt < until).map(({ now }) => now);
    return { ...entry, decidedAt: until, now: Math.max(entry.now, ...before) };
  });
}

/**
 * The order in which calls decided. Rows of one moment are listed by their ids, which grow with writing: a merge that
 * looked at the clock before other users' turns of that moment, and decided after them, comes after them. It keeps
 * its moment, which its rows have. Its two users have no turn in between.
 */
function byDecision(a: Entry, b: Entry): number {
  return a.now - b.now || a.decidedAt - b.decidedAt;
}

/** The answer of an execution; if it was never sent, the answer stored with the changes. */
function firstAnswer(call: Call, { reply, turns }: Attempt): ModelReply | undefined {
  if (reply !== null && isFinal(reply)) return reply.model;
  const kept = turns.at(-1)?.changes.find(({ table }) => table === "idempotency")?.row as
    | IdempotencyRow
    | undefined;
  if (kept !== undefined) return replyFromWire(kept.status, JSON.parse(kept.body));
  // Another execution answered for itself: this one's answer was forgotten after a day.
  if (call.attempts.some((other) => other.reply?.isReplayed === false && isFinal(other.reply))) {
    return undefined;
  }
  return call.attempts.find((other) => other.reply?.isReplayed === true)?.reply?.model;
}

/** Null when some order explains every answer; else where the order of turns stops to. */
function search(entries: Entry[], newModel: () => Model): Difference | null {
  const first = replay(entries, newModel());
  let best = first;
  for (let tried = 0; best !== null && tried < ORDERS_MAX;) {
    const failed = best.place;
    let better: Difference | null = best;
    for (const place of otherPlaces(entries, failed)) {
      const moved = entries.slice();
      const [entry] = moved.splice(failed, 1);
      moved.splice(place, 0, entry as Entry);
      better = replay(moved, newModel());
      if (++tried >= ORDERS_MAX || better === null || better.place > failed) {
        if (better === null || better.place > failed) entries = moved;
        break;
      }
    }
    if (better !== null && better.place <= failed) return first;
    best = better;
  }
  return best === null ? null : first;
}

/** The other places that an entry's times allow, the nearest first. */
function otherPlaces(entries: readonly Entry[], place: number): number[] {
  const entry = entries[place] as Entry;
  const places: number[] = [];
  for (let to = place - 1; to >= 0 && (entries[to] as Entry).until > entry.from; to--) places.push(to);
  for (let to = place + 1; to < entries.length && (entries[to] as Entry).from < entry.until; to++) {
    places.push(to);
  }
  return places.sort((a, b) => Math.abs(a - place) - Math.abs(b - place));
}

function replay(entries: readonly Entry[], model: Model): Difference | null {
  let now = 0;
  for (const [place, entry] of entries.entries()) {
    now = Math.max(now, entry.now);
    const predicted = model.handle(entry.call.request as ModelRequest, now, entry.reply);
    const differences = entry.reply === undefined ? [] : compare(predicted, entry.reply);
    if (differences.length > 0) return { call: entry.call, place, differences };
  }
  return null;
}
