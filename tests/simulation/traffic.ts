// What clients ask for: requests about a few hot users who come, merge and go, with amounts around what is left. Unlike
// the model's workload it never waits for an answer: it names what it has heard of so far. Users whose id begins
// with "gone-" get erased; the model is not asked about them.

import type { CatalogDocument, Input, ModelReply, Operation, ProviderOperation } from "../model/document.ts";
import type { Random } from "../model/random.ts";
import { RunInputs } from "../model/workload_runs.ts";
import { KnownCredits } from "../model/workload_credits.ts";
import {
  correction,
  endOf,
  eventsOf,
  type KnownEvent,
  multipliersOf,
  quotaInput,
  upsertInput,
} from "../model/workload_inputs.ts";
import type { SimRequest } from "./history.ts";

interface KnownHold {
  readonly id: string;
  readonly userId: string;
  readonly expiresAtMs: number;
  isSettled: boolean;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const USERS = 6;
const USERS_MIN = 4;

const ENDPOINTS: Record<
  Exclude<
    Operation,
    | "spendCap"
    | "overage"
    | ProviderOperation
    | "users"
    | "ledger"
    | "events"
    | "event"
    | "aliasBatch"
    | "extend"
    | "getRun"
    | "listRuns"
    | "parent"
    | "unschedule"
  >,
  number
> = {
  reserve: 34,
  commit: 20,
  release: 8,
  track: 12,
  canUse: 4,
  usage: 5,
  subscribe: 5,
  cancel: 1.5,
  grant: 6,
  revoke: 1.5,
  credits: 2,
  alias: 2.5,
  customer: 1,
  createRun: 4,
  endRun: 0.7,
};

const TREE_ENDPOINTS = { ...ENDPOINTS, parent: 4 };

/** What traffic has beside plain calls. */
interface TrafficOptions {
  /** Whether there are users who get erased. */
  readonly hasGone: boolean;
  /** Whether users have parents, which change. */
  readonly hasTrees: boolean;
}

/** Requests, one after another. */
export class Traffic {
  readonly #random: Random;
  readonly #catalog: CatalogDocument;
  readonly #events: readonly KnownEvent[];
  readonly #credits: KnownCredits;
  readonly #runs: RunInputs;
  readonly #hasGone: boolean;
  readonly #hasTrees: boolean;
  readonly #holds: KnownHold[] = [];
  /** Ids in use, and the canonical ids of aliases. */
  readonly #ids: string[] = [];
  readonly #canonical = new Map<string, string>();
  readonly #rooms = new Map<string, number[]>();
  /** Users who are being merged, for the calls that come next. */
  #chased: { readonly ids: readonly string[]; left: number } | null = null;
  #arrived = 0;
  #batches = 0;
  /** When a call that guards refused would pass. */
  #passesAtMs = 0;

  constructor(random: Random, catalog: CatalogDocument, { hasGone, hasTrees }: TrafficOptions) {
    this.#random = random;
    this.#hasGone = hasGone;
    this.#hasTrees = hasTrees;
    this.#catalog = catalog;
    this.#events = eventsOf(catalog);
    this.#credits = new KnownCredits(random, catalog);
    this.#runs = new RunInputs(random, [...this.#events]);
    for (let user = 0; user < USERS; user++) this.#arrive();
  }

  /** Every id that was ever used. */
  get ids(): readonly string[] {
    return this.#ids;
  }

  /** Whether the next request is about users who are being merged. */
  get isChasing(): boolean {
    return this.#chased !== null;
  }

  /** How far the calendar leaps before the next request. */
  leap(nowMs: number): number {
    const random = this.#random;
    const kind = random.weighted({
      none: 80,
      seconds: 10,
      lapse: 4,
      expiry: 2,
      minutes: 2,
      hours: 0.8,
      midnight: 0.6,
      days: 0.3,
      month: 0.1,
      pass: this.#passesAtMs > nowMs ? 15 : 0,
    });
    const leaps = {
      none: () => 0,
      seconds: () => random.whole(1, 40) * 1000,
      lapse: () => this.#toNextLapse(nowMs) + random.pick([-1, 0, 0, 1, 5000]),
      expiry: () => (this.#credits.toNextExpiry(nowMs) ?? 1) + random.pick([-1, 0, 0, 1, 3000]),
      minutes: () => random.whole(1, 11) * 60_000,
      hours: () => random.whole(1, 20) * HOUR_MS,
      midnight: () => DAY_MS - nowMs % DAY_MS + random.pick([-1, 0, 1]),
      days: () => random.whole(1, 5) * DAY_MS,
      month: () => random.pick([28, 30, 31]) * DAY_MS,
      pass: () => this.#passesAtMs - nowMs + random.pick([-1, 0, 1]),
    };
    return Math.max(0, leaps[kind]());
  }

  /** The next request at a moment of the calendar. */
  next(nowMs: number): SimRequest {
    const random = this.#random;
    const chasing = this.#chase(nowMs);
    if (chasing !== null) return chasing;
    if (random.chance(0.05) && this.#hasGone) return this.#ofGone(nowMs);
    const place = this.#arrived++;
    if (place < USERS - 1) {
      return { op: "subscribe", input: this.#upsert(this.#ids[place] as string, nowMs, true) };
    }
    const drawn: Operation = random.weighted(this.#hasTrees ? TREE_ENDPOINTS : ENDPOINTS);
    const op = (drawn === "commit" || drawn === "release") && this.#holds.length === 0 ? "reserve" : drawn;
    const input = this.#input(op, this.#user(), nowMs);
    if (op === "alias") {
      this.#chased = { ids: [String(input["from"]), String(input["to"])], left: random.whole(2, 8) };
    }
    return { op, input };
  }

  /** A call about users who are being merged: it should run before the merge or after it, and never within. */
  #chase(nowMs: number): SimRequest | null {
    const chased = this.#chased;
    if (chased === null) return null;
    if (--chased.left === 0) this.#chased = null;
    const op = this.#random.pick(["reserve", "reserve", "track", "usage", "commit", "grant"] as const);
    return { op, input: this.#input(op, this.#random.pick(chased.ids), nowMs) };
  }

  /** Takes the answer to a request. */
  observe({ op, input }: SimRequest, { data = {}, status }: ModelReply, nowMs: number): void {
    const retryAfterMs = data["retryAfterMs"];
    if (typeof retryAfterMs === "number") this.#passesAtMs = nowMs + retryAfterMs;
    const userId = this.#canonicalOf(String(input["userId"] ?? ""));
    if (isUnmodelled(userId)) return;
    if (op === "grant" || op === "credits" || op === "revoke") {
      this.#credits.observe({ op, input: { ...input, userId } }, { status, data });
    }
    if (op === "createRun" || op === "endRun") {
      this.#runs.observe({ op, input: { ...input, userId } }, { status, data });
    }
    const id = data["reservationId"];
    if (op === "reserve" && typeof id === "string") {
      const expiresAtMs = Date.parse(String(data["expiresAt"]));
      this.#holds.push({ id, userId, expiresAtMs, isSettled: false });
    }
    if (op === "commit" || op === "release") {
      const hold = this.#holds.find((each) => each.id === input["reservationId"]);
      if (hold !== undefined && status === 200) hold.isSettled = true;
    }
    if (op === "alias" && data["alreadyMerged"] === false && data["dryRun"] === false) {
      this.#merged(String(input["from"]), String(input["to"]));
    }
    const levels = [data, ...(data["levels"] ?? []) as Input[]];
    const groups = levels.flatMap((each) =>
      (each["groups"] ?? each["counters"] ?? []) as Record<string, number>[]
    );
    if (groups.length > 0) {
      this.#rooms.set(
        userId,
        groups.flatMap((each) => this.#room(each)),
      );
    }
  }

  #merged(from: string, to: string): void {
    const into = this.#canonicalOf(to);
    if (this.#canonicalOf(from) === into) return;
    this.#credits.merged(this.#canonicalOf(from), into);
    this.#runs.merged(this.#canonicalOf(from), into);
    this.#canonical.set(this.#canonicalOf(from), into);
    const living = this.#ids.filter((id) => !this.#canonical.has(id) && !isGone(id));
    if (living.length < USERS_MIN) this.#arrive();
  }

  #arrive(): void {
    const no = this.#ids.length + 1;
    this.#ids.push(no % 6 === 0 ? `anon_${no}` : `user-${no}`);
  }

  #canonicalOf(id: string): string {
    let canonical = id;
    for (let next = this.#canonical.get(id); next !== undefined; next = this.#canonical.get(next)) {
      canonical = next;
    }
    return canonical;
  }

  /** Mostly one of the first, so that calls meet. */
  #user(): string {
    const random = this.#random;
    const some = random.chance(0.5) ? this.#ids.slice(0, 2) : this.#ids;
    return random.pick(some.filter((id) => !isGone(id)));
  }

  #room(group: Record<string, number>): number[] {
    const current = group["current"] ?? group["count"] ?? 0;
    const left = (group["quota"] ?? 0) - current;
    const gate = group["headroomGate"];
    if (gate === undefined) return [left];
    return [left, gate - current, ...multipliersOf(this.#catalog).map((value) => left / value)];
  }

  #input(op: Operation, userId: string, nowMs: number): Input {
    const random = this.#random;
    const canonical = this.#canonicalOf(userId);
    switch (op) {
      case "reserve":
      case "track":
      case "canUse":
        return { userId, ...this.#asking(op, canonical, nowMs), ...this.#runs.callInput(canonical, nowMs) };
      case "createRun":
        return { ...this.#runs.createInput(canonical, this.#rooms.get(canonical) ?? [], nowMs), userId };
      case "endRun":
        return { runId: this.#runs.someId(canonical, nowMs) };
      case "commit":
        return { reservationId: this.#hold(nowMs), ...correction(random, this.#rooms.get(canonical) ?? []) };
      case "release":
        return { reservationId: this.#hold(nowMs), ...(random.chance(0.3) ? { reason: "done" } : {}) };
      case "subscribe":
        return this.#upsert(userId, nowMs, false);
      case "cancel": {
        const ids = random.pick([{}, {}, { provider: "stripe", externalId: "one" }]);
        return { userId, ...ids, ...(random.chance(0.5) ? { endsAt: endOf(random, nowMs + HOUR_MS) } : {}) };
      }
      case "grant":
        return { ...this.#credits.grantInput(canonical, nowMs), userId };
      case "revoke":
        return this.#credits.revokeInput();
      case "alias":
        return { from: userId, to: this.#user(), ...(random.chance(0.2) ? { dryRun: true } : {}) };
      case "parent":
        return { userId, parentId: random.chance(0.2) ? null : this.#user(), ...this.#memberLimits() };
      case "credits":
        return { userId, ...(random.chance(0.3) ? { includeExpired: "false" } : {}) };
      default:
        return { userId };
    }
  }

  /** Limits of the user's shares of groups of any plan. */
  #memberLimits(): Input {
    const kind = this.#random.pick(["none", "none", "null", "some"] as const);
    if (kind === "none") return {};
    const groups = this.#catalog.plans.flatMap(({ limits }) => limits).filter(() => this.#random.chance(0.3));
    const limits = groups.map(({ id, quota }) => [id, { quota: Math.round(quota * 4) / 10 }]);
    return { memberLimits: kind === "null" ? null : Object.fromEntries(limits) };
  }

  #asking(op: "reserve" | "track" | "canUse", userId: string, nowMs: number): Input {
    const random = this.#random;
    const plan = this.#rooms.get(userId) ?? [];
    const payable = this.#credits.payable(userId, nowMs);
    const rooms = payable.length > 0 && random.chance(0.5) ? this.#credits.amounts(userId, plan) : plan;
    const events = payable.length > 0 && random.chance(0.2) ? payable : this.#events;
    return quotaInput(random, op, random.pick(events), rooms);
  }

  #upsert(userId: string, nowMs: number, isSimple: boolean): Input {
    return { userId, ...upsertInput(this.#random, this.#catalog, nowMs, isSimple) };
  }

  /** Mostly a young open one, but also settled, long expired and unknown ones. */
  #hold(nowMs: number): string {
    const random = this.#random;
    if (this.#holds.length === 0 || random.chance(0.03)) return "rsv_unknown";
    const young = this.#holds.slice(-30);
    const open = young.filter((each) => !each.isSettled && each.expiresAtMs > nowMs);
    if (open.length > 0 && random.chance(0.7)) return random.pick(open).id;
    return random.pick(random.chance(0.8) ? young : this.#holds).id;
  }

  #toNextLapse(nowMs: number): number {
    const ahead = this.#holds.slice(-60).filter((each) => !each.isSettled && each.expiresAtMs > nowMs);
    return Math.min(1, ...ahead.map((each) => each.expiresAtMs - nowMs));
  }

  /** A request about one of those who pay by Stripe. */
  ofBuyer(ids: readonly string[]): SimRequest {
    const random = this.#random;
    const userId = random.pick(ids);
    const op = random.weighted({ alias: 3, reserve: 6, track: 3, usage: 1, credits: 1, customer: 1 });
    if (op === "alias") return { op, input: { from: userId, to: random.pick(ids) } };
    if (op !== "reserve" && op !== "track") return { op, input: { userId } };
    return { op, input: { userId, ...quotaInput(random, op, random.pick(this.#events), []) } };
  }

  /** A batch of events, or of calls; some have a key of their own. */
  batch(workspaceId: string): SimRequest {
    const random = this.#random;
    const no = ++this.#batches;
    const events = Array.from({ length: random.whole(1, 6) }, (_, place) => ({
      userId: `batch-${random.whole(1, 4)}`,
      event: random.pick(this.#events).event,
      metadata: { batch: no, place, of: workspaceId },
      ...(random.chance(0.3) ? { idempotencyKey: `event-${no}-${place}` } : {}),
    }));
    if (no % 3 !== 0) return { op: "trackBatch", input: { events } };
    const calls = events.map((body, place) => ({ ...body, call: place % 2 === 0 ? "track" : "reserve" }));
    return { op: "batch", input: { calls } };
  }

  /** A request about a user who gets erased now and then. */
  #ofGone(nowMs: number): SimRequest {
    const random = this.#random;
    const userId = `gone-${random.whole(1, 3)}`;
    const kind = random.weighted({
      erase: 2,
      optOut: 1,
      optIn: 1,
      alias: 1,
      parent: this.#hasTrees ? 2 : 0,
      subscribe: 3,
      grant: 2,
      reserve: 6,
      track: 3,
    });
    switch (kind) {
      case "erase":
        return { op: "erase", input: { distinctId: userId } };
      case "optOut":
      case "optIn":
        return { op: kind, input: { distinctId: userId, scope: "ai_personalization" } };
      case "alias":
        return { op: "alias", input: { from: userId, to: `gone-${random.whole(1, 3)}` } };
      case "parent":
        return { op: "parent", input: { userId, parentId: `gone-${random.whole(1, 3)}` } };
      case "subscribe":
        return { op: "subscribe", input: this.#upsert(userId, nowMs, true) };
      case "grant":
        return { op: "grant", input: this.#credits.grantInput(userId, nowMs) };
      case "reserve":
      case "track":
        return { op: kind, input: { userId, ...quotaInput(random, kind, random.pick(this.#events), []) } };
    }
  }
}

/** Who pays by Stripe, whose events come in batches, who has keys of its own, and who calls at once with others. */
const OTHERS = ["buyer-", "batch-", "holder-", "crew-"];

/** Whether the model is asked nothing about an id: those who get erased, and others. */
export function isUnmodelled(id: unknown): boolean {
  return isGone(id) || typeof id === "string" && (OTHERS.some((name) => id.startsWith(name)));
}

/** Whether an id is of those who get erased. */
export function isGone(id: unknown): boolean {
  return typeof id === "string" && id.startsWith("gone-");
}
