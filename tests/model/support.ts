// Helpers for the tests of the model: one user with a clock, so that each call is one line.

import type {
  CatalogDocument,
  Input,
  LimitGroup,
  ModelOptions,
  ModelReply,
  Operation,
  Pack,
  Plan,
} from "./document.ts";
import { Model } from "./model.ts";

/** A model with a clock; the ids it hands out are its own placeholders. */
export class Scene {
  readonly model: Model;
  now: number;

  constructor(catalog: CatalogDocument, at = "2026-03-10T12:00:00.000Z", options: ModelOptions = {}) {
    this.model = new Model(catalog, options);
    this.now = Date.parse(at);
  }

  at(time: string): this {
    this.now = Date.parse(time);
    return this;
  }

  wait(seconds: number): this {
    this.now += seconds * 1000;
    return this;
  }

  ask(op: Operation, input: Input = {}): ModelReply {
    return this.model.handle(
      { op, input: op.startsWith("event") ? input : { userId: "u", ...input } },
      this.now,
    );
  }

  /** The data of a call that must succeed. */
  // deno-lint-ignore no-explicit-any
  data(op: Operation, input: Input = {}): any {
    const reply = this.ask(op, input);
    if (reply.status !== 200) throw new Error(`${op} answered ${reply.code}`);
    return reply.data;
  }

  /** Reserves, and gives the id of the reservation that must come of it. */
  hold(input: Input): string {
    const { allowed, reservationId } = this.data("reserve", input);
    if (!allowed) throw new Error("the reserve was refused");
    return reservationId;
  }

  /** Group id to count, of the running window. */
  counts(): Record<string, number> {
    const { counters } = this.data("usage");
    return Object.fromEntries(
      counters.map((each: { groupId: string; count: number }) => [each.groupId, each.count]),
    );
  }

  /** Grants a pack, and gives the ids of its balances. */
  grant(packId: string, input: Input = {}): string[] {
    const { balances } = this.data("grant", { packId, ...input });
    return balances.map((each: { balanceId: string }) => each.balanceId);
  }

  /** What the user's balances have left, in consumption order; expired and revoked ones too. */
  left(): number[] {
    const { credits } = this.data("credits", { includeExpired: true });
    return credits.map((each: { remaining: number }) => each.remaining);
  }

  /** The ledger, oldest first, each row as its reason and amount. */
  ledger(input: Input = {}): string[] {
    const { entries } = this.data("ledger", input);
    return entries.map((row: { reason: string; delta: number }) => `${row.reason} ${row.delta}`).reverse();
  }
}

/** A catalog of plans that are given in short. */
export function catalogOf(
  ...plans: (Partial<Plan> & { id: string; limits: LimitGroup[] })[]
): CatalogDocument {
  return {
    settings: { promptLogging: true, reservationTtlSeconds: 600 },
    models: [
      { id: "film", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
      { id: "chat", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 15 },
      { id: "paint", modality: "image", amountMode: "per_call", centsPerCall: 5 },
    ],
    plans: plans.map((plan, i) => ({
      name: plan.id,
      rank: i,
      period: { type: "monthly", anchor: "calendar" },
      ...plan,
    })),
  };
}

/** A pack without items, by default for counts of `x.*`. */
export function pack(id: string, more: Partial<Pack> = {}): Pack {
  return {
    id,
    name: `Pack ${id}`,
    kind: "generic",
    unit: "count",
    matches: [{ event: "x.*" }],
    items: [],
    ...more,
  };
}

export function limit(id: string, quota: number, more: Partial<LimitGroup> = {}): LimitGroup {
  return { id, label: id, unit: "count", quota, matches: [{ event: "x.*" }], ...more };
}
