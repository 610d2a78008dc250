// Guards and sessions, by a log of all calls that counted: no call was allowed at which more than the quota would be in
// flight or within the seconds of a rate. Every answer shows what open holds hold, and of a rate what the log has, at most
// one slot more. So no call is lost from a rate, and none counts that was refused. Sessions of a group never overlap. This
// checker knows the catalog, not how the product decides.

import { fromNumber } from "../../model/decimal.ts";
import type { Input, LimitGroup } from "../../model/document.ts";
import type { User } from "../../../src/domain/state/user.ts";
import type { Counter } from "../../../src/domain/state/counter.ts";
import type { MeteringEvent } from "../../../src/domain/state/event.ts";
import type { Line, Reservation } from "../../../src/domain/state/reservation.ts";
import type { Millis } from "../../../src/domain/values/period.ts";
import { type Attempt, isFinal } from "../history.ts";
import type { Turn } from "../recorder.ts";
import type { Tenant } from "../tenants.ts";
import type { Checker, Scene } from "../watch.ts";
import { gateOf, planOf, type Taken, takenBy } from "./grants.ts";

/** What a hold or an event took of a guard or has taken of it. */
interface Entry {
  readonly userKey: number;
  readonly groupId: string;
  readonly at: Millis;
  readonly amount: bigint;
  /** Whether a late commit counted it: in the plan of its hold, which the user may have left. */
  readonly isLate?: boolean;
}

/** The calls that count, in the order of turns. */
class CallLog {
  readonly #into = new Map<number, number>();
  readonly #users = new Map<string, number>();
  /** By the id of the hold. */
  readonly #open = new Map<string, readonly Entry[]>();
  /** By the id of the hold or event. */
  readonly #counted = new Map<string, readonly Entry[]>();
  /** Ends of sessions by their start, by user, plan and group. */
  readonly #sessions = new Map<string, Map<Millis, Millis>>();

  take({ changes }: Turn): void {
    for (const change of changes) {
      if (change.table === "users") this.#learn(change.row);
      if (change.table === "reservations") this.#reservation(change.row);
      if (change.table === "events") this.#event(change.row);
      if (change.table === "counters") this.#counter(change.row);
    }
  }

  /** The user that an id of a realm means now. */
  userOf(realm: number, id: unknown): number | undefined {
    const key = this.#users.get(`${realm} ${id}`);
    return key === undefined ? undefined : this.canonicalOf(key);
  }

  canonicalOf(key: number): number {
    const into = this.#into.get(key);
    return into === undefined ? key : this.canonicalOf(into);
  }

  /** What open holds of a user hold. */
  inFlight(user: number, groupId: string): bigint {
    return this.#sum(this.#open, user, groupId, () => true);
  }

  /** What a user counted after a moment, in the plan in force or in any. */
  countedAfter(user: number, groupId: string, at: Millis, withLate = false): bigint {
    return this.#sum(
      this.#counted,
      user,
      groupId,
      (entry) => entry.at > at && (withLate || entry.isLate !== true),
    );
  }

  /** Starts of the sessions that run at a moment. */
  sessionsAt(user: number, planId: string, groupId: string, at: Millis): Millis[] {
    const sessions = [...this.#sessions.get(`${user} ${planId} ${groupId}`) ?? []];
    return sessions.filter(([start, end]) => start <= at && at < end).map(([start]) => start);
  }

  #sum(
    entries: ReadonlyMap<string, readonly Entry[]>,
    user: number,
    groupId: string,
    counts: (entry: Entry) => boolean,
  ): bigint {
    let sum = 0n;
    for (const entry of [...entries.values()].flat()) {
      const isHere = entry.groupId === groupId && this.canonicalOf(entry.userKey) === user;
      if (isHere && counts(entry)) sum += entry.amount;
    }
    return sum;
  }

  #learn({ key, id, realm, mergedInto }: User): void {
    this.#users.set(`${realm} ${id}`, key);
    if (mergedInto !== null) this.#into.set(key, mergedInto);
  }

  #reservation(
    { id, status, userKey, lines, createdAt: at, amounts, settledAt, expiresAt }: Reservation,
  ): void {
    const isLate = status === "committed" && settledAt !== null && settledAt >= expiresAt;
    const entriesOf = (kind: string, amountOf: (line: Line) => bigint) =>
      lines.filter(({ window }) => window.kind === kind)
        .map((line): Entry => ({ userKey, groupId: line.groupId, at, amount: amountOf(line), isLate }));
    const isOpen = status === "held";
    if (isOpen) this.#open.set(id, entriesOf("concurrency", ({ unit }) => amounts[unit]));
    else this.#open.delete(id);
    if (isOpen) this.#counted.set(id, entriesOf("rate", ({ unit }) => amounts[unit]));
    else if (status === "committed") this.#counted.set(id, entriesOf("rate", ({ taken }) => taken));
    else this.#counted.delete(id);
  }

  #event({ id, reservationId, userKey, lines, levels = [], createdAt: at }: MeteringEvent): void {
    if (reservationId !== null) return;
    const entries = [{ userKey, lines }, ...levels].flatMap((level) =>
      level.lines.filter(({ window }) => window.kind === "rate")
        .map(({ groupId, taken }): Entry => ({ userKey: level.userKey, groupId, at, amount: taken }))
    );
    this.#counted.set(id, entries);
  }

  #counter({ userKey, planId, groupId, windowStart, windowEnd, kind }: Counter): void {
    const key = `${userKey} ${planId} ${groupId}`;
    const sessions = this.#sessions.get(key) ?? new Map<Millis, Millis>();
    this.#sessions.set(key, sessions);
    if (kind === "session") sessions.set(windowStart, windowEnd as number);
    else sessions.delete(windowStart);
  }
}

/** Follows every call, and compares every answer when all is over. */
export function guardsChecker(): Checker {
  const log = new CallLog();
  const durable = new Set<Turn>();
  return {
    name: "guards",
    onTurn(turn, scene) {
      durable.add(turn);
      log.take(turn);
      for (const taken of turn.changes.flatMap(takenBy)) checkTaken(taken, turn, log, scene);
    },
    atEnd(scene) {
      if (scene.tenants.some(({ hasWindows }) => hasWindows)) checkAnswers(durable, scene);
    },
  };
}

/** The limit groups of a plan that are guards. All of them match every event. */
function guardsOf(tenant: Tenant, planId: string): LimitGroup[] {
  const groups = planOf(tenant.catalog, planId)?.limits ?? [];
  return groups.filter(({ period }) => period?.type === "rolling" || period?.type === "concurrent");
}

/** The seconds of a rate. */
function secondsOf({ period }: LimitGroup): number {
  return period?.type === "rolling" ? period.seconds : 0;
}

function checkTaken({ id, userKey, lines, isGated }: Taken, turn: Turn, log: CallLog, scene: Scene): void {
  const tenant = scene.tenantOf(userKey);
  if (tenant?.hasWindows !== true || scene.isGone(userKey)) return;
  const user = log.canonicalOf(userKey);
  for (const planId of new Set(lines.map((line) => line.planId))) {
    for (const group of guardsOf(tenant, planId)) {
      const { period, unit } = group;
      if (period?.type === "concurrent" && !isGated) continue;
      const line = lines.find((each) => each.planId === planId && each.groupId === group.id);
      if (line?.unit !== unit) throw new Error(`${id} was not counted in ${group.id}`);
      if (line.taken === 0n) continue;
      const counted = period?.type === "concurrent"
        ? log.inFlight(user, group.id)
        : log.countedAfter(user, group.id, turn.now - secondsOf(group) * 1000);
      const quota = gateOf(scene, tenant.catalog, { userKey, planId, group, isGated: false });
      if (counted > quota) throw new Error(`${id} made ${counted} of ${quota} millionths of ${group.id}`);
    }
  }
  for (const { planId, groupId, window } of lines) {
    if (window.kind !== "session") continue;
    const others = log.sessionsAt(user, planId, groupId, turn.now).filter((start) => start !== window.start);
    if (others.length > 0) throw new Error(`${id} began a session of ${groupId} while one ran`);
  }
}

/** Shows what answers say of guards to the log of their moment. */
function checkAnswers(durable: ReadonlySet<Turn>, { calls, isGone }: Scene): void {
  const log = new CallLog();
  const answers = new Map<Turn, Attempt>();
  for (const attempt of calls.flatMap(({ attempts }) => attempts)) {
    const turn = attempt.turns.at(-1);
    const { reply } = attempt;
    if (turn !== undefined && reply !== null && isFinal(reply) && !reply.isReplayed) {
      answers.set(turn, attempt);
    }
  }
  const turns = [...new Set([...durable, ...answers.keys()])].sort((a, b) => a.decidedAt - b.decidedAt);
  for (const turn of turns) {
    if (durable.has(turn)) log.take(turn);
    const attempt = answers.get(turn);
    if (attempt === undefined || !attempt.call.tenant.hasWindows) continue;
    const user = log.userOf(attempt.call.tenant.realm, attempt.call.request.input["userId"]);
    if (user !== undefined && !isGone(user)) checkAnswer(attempt, turn.now, user, log);
  }
}

function checkAnswer({ call, reply }: Attempt, now: Millis, user: number, log: CallLog): void {
  const { no, tenant: { catalog }, request: { op } } = call;
  const { data = {} } = reply?.model ?? {};
  const groups = (data["groups"] ?? data["counters"] ?? data["details"] ?? []) as readonly Input[];
  for (const shown of groups) {
    const group = catalog.plans[0]?.limits.find(({ id }) => id === shown["groupId"]) as
      | LimitGroup
      | undefined;
    const type = group?.period?.type;
    if (group === undefined || type !== "rolling" && type !== "concurrent") continue;
    const told = fromNumber(Number(shown["current"] ?? shown["count"]));
    const seconds = secondsOf(group);
    const since = now - seconds * 1000;
    const [least, most]: readonly [bigint, bigint] = type === "concurrent"
      ? [log.inFlight(user, group.id), log.inFlight(user, group.id)]
      : [
        log.countedAfter(user, group.id, since),
        log.countedAfter(user, group.id, since - Math.ceil(seconds * 1000 / 60), true),
      ];
    if (told >= least && told <= most) continue;
    throw new Error(`call ${no} (${op}) shows ${told} of ${group.id}, which has ${least} to ${most}`);
  }
}
