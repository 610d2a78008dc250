// A seeded stream of requests for a catalog, made to be nasty: bursts at one instant, amounts at and
// around what is left, fractions, settled-again and late settlements, windows that roll, plan changes
// with open holds, several subscriptions, ends and returns. It sees the answers through `observe`, so
// it names real ids; the same seed and answers of the same meaning give the same stream.
// How often each operation comes is in workload_weights.ts. Amounts and corrections are in workload_inputs.ts, all of credits in
// workload_credits.ts and workload_chase.ts, all of merges in workload_people.ts,
// workload_aliases.ts and workload_merges.ts, trees in workload_trees.ts, and what a payment provider does in
// workload_stripe.ts.

import type { CatalogDocument, Input, ModelReply, ModelRequest, Operation } from "./document.ts";
import { Random } from "./random.ts";
import { AliasInputs, INVALID_ALIASES } from "./workload_aliases.ts";
import { CreditChase } from "./workload_chase.ts";
import { KnownCredits } from "./workload_credits.ts";
import {
  correction,
  endOf,
  eventsOf,
  hasOffers,
  INVALID,
  type KnownEvent,
  multipliersOf,
  quotaInput,
  upsertInput,
} from "./workload_inputs.ts";
import { MergeStories } from "./workload_merges.ts";
import { isPaced, Paces } from "./workload_paces.ts";
import { People } from "./workload_people.ts";
import { goesByHours, overageInput, sells, spendCapInput, toNextHour } from "./workload_overage.ts";
import { isOfRuns, RunInputs } from "./workload_runs.ts";
import { StripeInputs } from "./workload_stripe.ts";
import { type ShownGroup, shownGroups, Trees } from "./workload_trees.ts";
import { weightsOf } from "./workload_weights.ts";

interface WorkloadOptions {
  seed: number;
  catalog: CatalogDocument;
  /**
   * How many end users. Default 5; the last one never has a subscription, the third never has credits. With
   * merges or trees: how many at first, default 8.
   */
  users?: number;
  /** Also alias calls, with new users as others become aliases. Default false. */
  merges?: boolean;
  /** Also what a payment provider does: mirrored subscriptions, paid grants and refunds. Default false. */
  stripe?: boolean;
  /** Also runs, which calls name. Default false. */
  runs?: boolean;
  /** Also trees of users, which change all the time. Default false. */
  trees?: boolean;
  /** The clock at the first step. Default: the last day of a January, for clamped months. */
  startMs?: number;
  /** Also requests that must be refused as invalid. Default false: pure decisions do not validate. */
  invalid?: boolean;
}

export interface Step {
  index: number;
  /** How far to move the clock before the request. */
  advanceMs: number;
  request: ModelRequest;
}

interface KnownReservation {
  id: string;
  userId: string;
  expiresAtMs: number;
  settled: boolean;
}

const DEFAULT_START_MS = Date.UTC(2026, 0, 31, 10, 30, 0, 250);
const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

export class Workload {
  readonly #random: Random;
  readonly #options: WorkloadOptions;
  readonly #events: KnownEvent[];
  readonly #people: People;
  readonly #aliases: AliasInputs;
  readonly #stories: MergeStories;
  readonly #stripe: StripeInputs;
  readonly #runs: RunInputs;
  readonly #trees: Trees;
  readonly #paces: Paces;
  /** Whether groups have periods that only calls close in time meet. */
  readonly #isPaced: boolean;
  /** How many users subscribe before anything else happens. */
  readonly #first: number;
  readonly #reservations: KnownReservation[] = [];
  readonly #eventIds: string[] = [];
  /** What the last answers showed as left in the groups of each user. */
  readonly #rooms = new Map<string, number[]>();
  /** User to the events that a group covered of late. */
  readonly #covered = new Map<string, KnownEvent[]>();
  readonly #credits: KnownCredits;
  readonly #chase: CreditChase;
  #index = 0;
  #nowMs: number;
  #burst: { left: number; input: Input; op: Operation } | null = null;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#events = eventsOf(options.catalog);
    this.#credits = new KnownCredits(this.#random, options.catalog);
    this.#stripe = new StripeInputs(this.#random, options.catalog);
    this.#runs = new RunInputs(this.#random, this.#events);
    this.#chase = new CreditChase(this.#random, this.#credits, (userId) => this.#rooms.get(userId) ?? []);
    const { catalog, merges = false, trees = false, users = merges || trees ? 8 : 5 } = options;
    this.#first = users - 1;
    this.#people = new People(this.#random, users, merges);
    this.#aliases = new AliasInputs(this.#random, this.#people);
    const [random, people, inputs] = [this.#random, this.#people, this.#aliases];
    const asking = (op: "reserve" | "track" | "canUse", userId: string) => this.#asking(op, userId);
    this.#stories = new MergeStories({ random, catalog, people, inputs, asking });
    this.#trees = new Trees({ random, catalog, people, merges, asking });
    this.#paces = new Paces(random, asking);
    this.#isPaced = catalog.plans.some(({ limits }) => limits.some(isPaced));
    this.#nowMs = options.startMs ?? DEFAULT_START_MS;
  }

  /** The clock after the last step's advance. */
  get nowMs(): number {
    return this.#nowMs;
  }

  next(): Step {
    const index = this.#index++;
    const { advanceMs, request } = this.#nextRequest(index);
    return { index, advanceMs, request: this.#people.disguised(request) };
  }

  #nextRequest(index: number): Omit<Step, "index"> {
    const burst = this.#nextOfBurst();
    const told = burst ? null : this.#nextOfStory(index);
    if (told) {
      this.#nowMs += told.advanceMs;
      return told;
    }
    const op = burst?.op ?? this.#nextOperation(index);
    let advanceMs = burst ? 0 : this.#advance();
    // Two rows of one start and rank would tie for primary, and the order of such rows is not documented.
    if ((op === "subscribe" || op === "mirror") && advanceMs === 0) advanceMs = 1;
    this.#nowMs += advanceMs;
    return { advanceMs, request: burst ?? { op, input: this.#input(op, index) } };
  }

  #nextOfStory(index: number): Omit<Step, "index"> | null {
    const { trees = false, merges = false } = this.#options;
    const ofTree = trees && !this.#stories.isTelling ? this.#trees.next(index >= this.#first) : null;
    if (ofTree !== null) return ofTree;
    if (!merges) return this.#chase.next(this.#nowMs) ?? this.#paces.next(this.#nowMs);
    return this.#stories.next(this.#nowMs, false) ?? this.#chase.next(this.#nowMs) ??
      this.#paces.next(this.#nowMs) ?? this.#stories.next(this.#nowMs, index >= this.#first);
  }

  /** Takes the answer to a step. */
  observe(step: Step, reply: ModelReply): void {
    for (const { from, to } of this.#people.observe(step.request, reply)) {
      this.#credits.merged(from, to);
      this.#runs.merged(from, to);
    }
    this.#stories.observe(reply);
    this.#trees.observe(step.request, reply);
    const request = this.#people.canonized(step.request);
    const { op, input } = request;
    const userId = String(input["userId"] ?? "");
    const data = reply.data ?? {};
    this.#credits.observe(request, reply);
    this.#chase.observe(request, reply);
    this.#paces.observe(request, reply, this.#nowMs);
    for (const part of [this.#stripe, this.#runs]) part.observe(request, reply);
    const id = data["reservationId"];
    if (op === "reserve" && typeof id === "string") {
      const expiresAtMs = Date.parse(String(data["expiresAt"]));
      this.#reservations.push({ id, userId, expiresAtMs, settled: false });
    }
    if ((op === "commit" || op === "release") && reply.status === 200) {
      const settled = this.#reservations.find((each) => each.id === input["reservationId"]);
      if (settled) settled.settled = true;
    }
    const groups = shownGroups(data);
    if (groups && groups.length > 0 && userId) {
      this.#rooms.set(
        userId,
        groups.flatMap((each) => this.#roomsIn(each)),
      );
    }
    if (data["matched"] === true || String(data["matchStatus"]).startsWith("matched")) {
      const metadata = input["metadata"] as Record<string, unknown> | undefined;
      const known = { event: String(input["event"]), ...(metadata ? { metadata } : {}) };
      this.#covered.set(userId, [...(this.#covered.get(userId) ?? []).slice(-9), known]);
    }
    for (const row of (data["events"] ?? []) as { id: string }[]) this.#eventIds.push(row.id);
    if (this.#eventIds.length > 500) this.#eventIds.splice(0, 250);
  }

  /** What an answered group has left: by its quota, by its gate, divided by a multiplier, and for the caller. */
  #roomsIn({ member, current, count, quota = 0, headroomGate: gate }: ShownGroup): number[] {
    const used = current ?? count ?? 0;
    const left = quota - used;
    const own = typeof member?.quota === "number" ? [member.quota - member.count] : [];
    if (gate === undefined) return [left, ...own];
    if (gate - used !== left) return [left, gate - used, ...own];
    return [left, ...multipliersOf(this.#options.catalog).map((value) => left / value), ...own];
  }

  #nextOperation(index: number): Operation {
    if (index < this.#first) return "subscribe";
    const { catalog } = this.#options;
    const kinds = { offers: hasOffers(catalog), overage: sells(catalog) };
    return this.#random.weighted(weightsOf({ ...this.#options, ...kinds }));
  }

  #nextOfBurst(): { op: Operation; input: Input } | null {
    if (!this.#burst) return null;
    const { op, input } = this.#burst;
    if ((this.#burst.left -= 1) <= 0) this.#burst = null;
    return { op, input: structuredClone(input) };
  }

  #advance(): number {
    const random = this.#random;
    const kind = random.weighted({
      none: 40,
      millis: this.#isPaced ? 100 : 36,
      seconds: 14,
      lapse: 4,
      expiry: this.#isPaced ? 0.5 : 3,
      minutes: 2,
      hours: 0.8,
      boundary: 0.8,
      days: 0.4,
      weeks: 0.2,
      month: 0.1,
      hour: goesByHours(this.#options.catalog) ? 2 : 0,
    });
    switch (kind) {
      case "none":
        return 0;
      case "millis":
        return random.whole(1, this.#isPaced ? 1500 : 50);
      case "seconds":
        return random.whole(1, this.#isPaced ? 10 : 40) * 1000;
      case "lapse":
        return this.#toNextLapse() + random.pick([-1, 0, 0, 1, 5000]);
      case "expiry":
        return (this.#credits.toNextExpiry(this.#nowMs) ?? 1) + random.pick([-1, 0, 0, 1, 3000]);
      case "minutes":
        return random.whole(1, 11) * 60_000 + random.whole(0, 999);
      case "hours":
        return random.whole(1, 20) * HOUR_MS + random.whole(0, 999);
      case "boundary":
        return this.#toNextMidnight() + random.pick([-1, 0, 0, 1]);
      case "days":
        return random.whole(1, 5) * DAY_MS + random.whole(0, 999);
      case "weeks":
        return random.pick([7, 14]) * DAY_MS;
      case "hour":
        return toNextHour(this.#nowMs) + random.pick([-1, 0, 0, 1]);
      case "month":
        return random.pick([28, 29, 30, 31, 32]) * DAY_MS;
    }
  }

  /** To the moment when the next open hold lapses; at least 1 ms, so that a step back by 1 changes nothing. */
  #toNextLapse(): number {
    const ahead = this.#reservations.slice(-60).filter((each) =>
      !each.settled && each.expiresAtMs > this.#nowMs
    )
      .map((each) => each.expiresAtMs - this.#nowMs);
    return ahead.length > 0 ? Math.min(...ahead) : 1;
  }

  /** Mostly the next midnight; now and then that of the first of the next month. */
  #toNextMidnight(): number {
    const at = new Date(this.#nowMs);
    const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
    const next = this.#random.chance(0.2) ? Date.UTC(year, month + 1, 1) : Date.UTC(year, month, day + 1);
    return next - this.#nowMs;
  }

  #input(op: Operation, index: number): Input {
    const random = this.#random;
    if (this.#options.invalid && index > 10 && random.chance(0.04)) {
      const broken = [...INVALID, ...INVALID_ALIASES].filter((each) => each.op === op);
      if (broken.length > 0) return structuredClone(random.pick(broken).input);
    }
    const userId = this.#people.anyone(0.06);
    if (isOfRuns(op)) return this.#runs.input(op, userId, this.#rooms.get(userId) ?? [], this.#nowMs);
    switch (op) {
      case "reserve":
      case "track":
        return this.#maybeBurst(op, this.#asking(op, userId));
      case "canUse":
        return this.#asking(op, userId);
      case "commit":
        return this.#settling();
      case "release":
        return {
          reservationId: this.#pickReservation(),
          ...(random.chance(0.3) ? { reason: random.pick(["done", "é".repeat(600)]) } : {}),
          ...(random.chance(0.3) ? { errorCode: random.pick(["E_TIMEOUT", "x".repeat(140)]) } : {}),
          ...(this.#options.invalid && random.chance(0.05) ? { userId, statusCode: 500 } : {}),
        };
      case "usage":
        return {
          userId,
          ...(random.chance(0.4) ? { event: random.pick(this.#events).event } : {}),
          ...(this.#options.trees && random.chance(0.5) ? { levels: true } : {}),
        };
      case "users":
        return { userId };
      case "subscribe":
        return this.#upsert(index);
      case "unschedule": {
        const { userId, provider, externalId } = this.#canceling();
        return { userId, ...provider === undefined ? {} : { provider, externalId } };
      }
      case "cancel":
        return this.#canceling();
      case "grant":
        return this.#credits.grantInput(this.#people.creditor(), this.#nowMs);
      case "extend":
        return this.#credits.extendInput(this.#nowMs);
      case "revoke":
        return this.#credits.revokeInput();
      case "credits":
        return this.#credits.listInput(this.#people.anyone(0.12), random.pick(this.#events).event);
      case "ledger":
        return this.#credits.ledgerInput(this.#people.anyone(0.12));
      case "alias":
        return this.#aliases.aliasInput();
      case "aliasBatch":
        return this.#aliases.batchInput();
      case "customer":
        return { userId: this.#aliases.someId() };
      case "spendCap":
        return spendCapInput(random, this.#options.catalog, userId);
      case "overage":
        return overageInput(random, userId, this.#nowMs);
      case "parent":
        return this.#trees.parentInput();
      case "mirror":
        return this.#stripe.mirrorInput(this.#people.subscriber(), this.#nowMs);
      case "paidGrant":
        return this.#stripe.paidGrantInput(this.#people.creditor());
      case "refund":
        return this.#stripe.refundInput(this.#people.creditor());
      case "reinstate":
        return this.#stripe.reinstateInput(this.#people.creditor());
      case "events":
        return this.#listing(userId);
      case "event":
        return {
          eventId: this.#eventIds.length > 0 && random.chance(0.9)
            ? random.pick(this.#eventIds)
            : "evt_unknown",
        };
    }
  }

  #asking(op: "reserve" | "track" | "canUse", userId: string): Input {
    const ofRun = this.#options.runs === true ? this.#runs.callInput(userId, this.#nowMs) : {};
    return { ...this.#quotaAsked(op, userId), ...ofRun };
  }

  #quotaAsked(op: "reserve" | "track" | "canUse", userId: string): Input {
    const sendsUnknown = this.#options.invalid === true;
    const plan = this.#rooms.get(userId) ?? [];
    const payable = this.#credits.payable(userId, this.#nowMs);
    const rooms = payable.length > 0 && this.#random.chance(0.5) ? this.#credits.amounts(userId, plan) : plan;
    if (payable.length > 0 && this.#random.chance(0.2)) {
      return { userId, ...quotaInput(this.#random, op, this.#random.pick(payable), rooms, sendsUnknown) };
    }
    const covered = this.#covered.get(userId) ?? [];
    const events = covered.length > 0 && this.#random.chance(0.5) ? covered : this.#events;
    return { userId, ...quotaInput(this.#random, op, this.#random.pick(events), rooms, sendsUnknown) };
  }

  #maybeBurst(op: Operation, input: Input): Input {
    if (this.#random.chance(0.08)) this.#burst = { left: this.#random.whole(2, 7), input, op };
    return input;
  }

  /** Mostly a young open one, but also settled, long expired and unknown ones. */
  #pickReservation(): string {
    const random = this.#random;
    if (this.#reservations.length === 0 || random.chance(0.04)) return "rsv_unknown";
    const young = this.#reservations.slice(-40);
    const unsettled = young.filter((each) => !each.settled);
    const open = unsettled.filter((each) => each.expiresAtMs > this.#nowMs);
    if (open.length > 0 && random.chance(0.65)) return random.pick(open).id;
    if (unsettled.length > 0 && random.chance(0.5)) return random.pick(unsettled).id;
    return random.pick(random.chance(0.7) ? young : this.#reservations).id;
  }

  #settling(): Input {
    const reservationId = this.#pickReservation();
    const { userId = "" } = this.#reservations.find((each) => each.id === reservationId) ?? {};
    const plan = this.#roomsOfAll();
    const rooms = this.#random.chance(0.5) ? this.#credits.amounts(userId, plan) : plan;
    return { reservationId, ...correction(this.#random, rooms, this.#options.catalog) };
  }

  #roomsOfAll(): number[] {
    return [...this.#rooms.values()].flat().slice(-20);
  }

  #upsert(index: number): Input {
    const first = index < this.#first;
    const userId = first ? this.#people.living[index]!.id : this.#people.subscriber();
    return { userId, ...upsertInput(this.#random, this.#options.catalog, this.#nowMs, first) };
  }

  #canceling(): Input {
    const random = this.#random;
    const ids = random.pick([{}, {}, { provider: "stripe", externalId: "one" }, {
      provider: "apple",
      externalId: "two",
    }]);
    return {
      userId: random.chance(0.05) ? this.#people.living.at(-1)!.id : this.#people.subscriber(),
      ...ids,
      ...(random.chance(0.5) ? { endsAt: endOf(random, this.#nowMs) } : {}),
      ...(random.chance(0.5) ? { reason: "asked to" } : {}),
    };
  }

  #listing(userId: string): Input {
    const random = this.#random;
    return {
      ...(random.chance(0.5) ? { userId } : {}),
      ...(random.chance(0.3) ? { eventType: random.pick(this.#events).event } : {}),
      ...(random.chance(0.5) ? { limit: random.whole(1, 100) } : {}),
      ...(random.chance(0.3) ? { offset: random.whole(0, 30) } : {}),
    };
  }
}
