// Metering operations and AI spend of workspaces, and spend of apps at the gateway, in the running UTC month, with their caps. A cap refuses only when
// the total has reached it, so a merge may end above it. Totals are taken synchronously inside a turn, so that no two
// callers can pass on one operation, and are written with the batch of the turn, so that a crash loses neither.

import type { AiSpendRow, GatewaySpendRow, Mode, OperationsRow, Totals } from "./port.ts";
import type { Batch } from "./gate.ts";
import type { CommitAnswer } from "../src/domain/metering/commit.ts";
import type { Result } from "../src/domain/state/result.ts";
import { type Amount, amountOf } from "../src/domain/values/amount.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { type Refusal, refusal } from "../src/domain/values/refusal.ts";

/** Caps of a workspace; null = no limit. */
export interface WorkspaceCaps {
  readonly workspaceId: string;
  readonly operationCap: number | null;
  readonly testOperationCap: number | null;
  readonly testCreditBalanceCap: number | null;
  readonly aiBudgetCents: number | null;
}

/** What a call of the gateway cost its app. */
export interface GatewayCost {
  readonly appId: string;
  readonly cents: Amount;
}

/** What a turn spends on models. */
export interface Spend {
  readonly aiCents?: Amount | undefined;
  readonly gateway?: GatewayCost | null;
}

/** A turn that spends nothing. */
export const NO_SPEND: Spend = {};

/**
 * Returns what a turn spends: the cents that its call names for the AI budget, and the cost of a commit for the gateway
 * budget of the app that it names.
 */
export function spendOf(
  { aiCents, gatewayApp }: {
    readonly aiCents?: Amount | undefined;
    readonly gatewayApp?: string | undefined;
  },
  result: Result<unknown>,
): Spend {
  if (gatewayApp === undefined || !result.ok) return { aiCents };
  const { cost } = result.answer as Partial<CommitAnswer>;
  return { aiCents, gateway: cost === undefined ? null : { appId: gatewayApp, cents: cost.cents } };
}

/** Returns the UTC month of a real time as "YYYY-MM". */
export function monthOf(at: Millis): string {
  return new Date(at).toISOString().slice(0, 7);
}

/** Operations used, by workspace, mode and month; credit balances issued, by realm; spend on models, by workspace. */
export class Budget {
  readonly #issued = new Map<number, number>();
  readonly #used = new Map<string, OperationsRow>();
  readonly #spent = new Map<string, Amount>();
  /** The keys of a workspace in the two maps above. */
  readonly #keys = new Map<string, Set<string>>();
  readonly #realNow: () => Millis;
  #month = "";
  #monthEndsAt = -Infinity;
  /** The newest key: most turns are of one workspace. */
  #lastKey = { workspaceId: "", mode: "" as Mode | "", month: "", key: "" };

  constructor(realNow: () => Millis) {
    this.#realNow = realNow;
  }

  /** Adds the stored totals of workspaces, before their cell's door opens. */
  admit({ operations, issues, aiSpend, gatewaySpend }: Totals): void {
    for (const row of operations) {
      this.#setUsed(keyOf(row.workspaceId, row.mode, row.month), row, undefined);
    }
    for (const { realm, issued } of issues) this.#issued.set(realm, issued);
    for (const { workspaceId, month, cents } of aiSpend) {
      this.#setSpent(workspaceId, spendKey(workspaceId, month), cents, undefined);
    }
    for (const { workspaceId, appId, month, cents } of gatewaySpend) {
      this.#setSpent(workspaceId, gatewayKey(workspaceId, appId, month), cents, undefined);
    }
  }

  /** Forgets the totals of a workspace that another node owns from now on. */
  drop(workspaceId: string): void {
    for (const key of this.#keys.get(workspaceId) ?? []) {
      this.#used.delete(key);
      this.#spent.delete(key);
    }
    this.#keys.delete(workspaceId);
  }

  /** Forgets the total of a realm that another node owns from now on. */
  dropRealm(realm: number): void {
    this.#issued.delete(realm);
  }

  /** Totals in memory of a workspace. */
  sizeOf(workspaceId: string): number {
    return this.#keys.get(workspaceId)?.size ?? 0;
  }

  /** Returns the refusal of a workspace at its operation cap, else null. Only `used >= cap` refuses. */
  refusal(caps: WorkspaceCaps, mode: Mode): Refusal | null {
    const cap = mode === "live" ? caps.operationCap : caps.testOperationCap;
    if (cap === null || this.used(caps.workspaceId, mode) < cap) return null;
    return mode === "live"
      ? refusal("workspace_limit_reached", "Operation cap of the workspace reached for this month")
      : refusal("test_quota_exceeded", "Test operation cap of the workspace reached for this month");
  }

  /** Operations used in the running month. */
  used(workspaceId: string, mode: Mode): number {
    return this.#used.get(this.#keyOf(workspaceId, mode, this.#monthNow()))?.used ?? 0;
  }

  /** Counts operations of a turn; returns the new total, which must be written with the turn's batch. */
  take(workspaceId: string, mode: Mode, operations: number): OperationsRow {
    const month = this.#monthNow();
    const key = this.#keyOf(workspaceId, mode, month);
    const before = this.#used.get(key);
    const row = { workspaceId, mode, month, used: (before?.used ?? 0) + operations };
    this.#setUsed(key, row, before);
    return row;
  }

  /** Counts operations of a turn and writes the total with its batch. */
  takeInto(batch: Pick<Batch, "totals">, workspaceId: string, mode: Mode, operations: number): void {
    const row = this.take(workspaceId, mode, operations);
    batch.totals.set(this.#keyOf(workspaceId, mode, row.month), { verb: "put", table: "operations", row });
  }

  /** Returns how many more credit balances a realm may issue; null for no limit. Only test mode has one. */
  balancesLeft(realm: number, mode: Mode, caps: WorkspaceCaps): number | null {
    if (mode === "live" || caps.testCreditBalanceCap === null) return null;
    return Math.max(caps.testCreditBalanceCap - (this.#issued.get(realm) ?? 0), 0);
  }

  /** Counts balances that a turn issued and writes the total with its batch. */
  issueInto(batch: Pick<Batch, "totals">, realm: number, balances: number): void {
    const issued = (this.#issued.get(realm) ?? 0) + balances;
    this.#issued.set(realm, issued);
    batch.totals.set(`credits\n${realm}`, { verb: "put", table: "credit_issues", row: { realm, issued } });
  }

  /** Returns the refusal of a workspace at its AI budget, else null. Only `spent >= budget` refuses. */
  aiRefusal({ workspaceId, aiBudgetCents }: WorkspaceCaps): Refusal | null {
    if (aiBudgetCents === null || this.aiSpent(workspaceId) < amountOf(aiBudgetCents)) return null;
    return refusal("ai_budget_exceeded", "AI budget of the workspace used up for this month");
  }

  /** Cents spent on models in the running month, in both modes. */
  aiSpent(workspaceId: string): Amount {
    return this.#spent.get(spendKey(workspaceId, this.#monthNow())) ?? 0n;
  }

  /** Counts what a turn spends and writes the totals with its batch. */
  spendAllInto(batch: Pick<Batch, "totals">, workspaceId: string, { aiCents, gateway }: Spend): void {
    if (aiCents !== undefined) this.spendInto(batch, workspaceId, aiCents);
    if (gateway != null) this.spendAtGatewayInto(batch, workspaceId, gateway);
  }

  /** Counts the cost of a model's call and writes the total with a batch. */
  spendInto(batch: Pick<Batch, "totals">, workspaceId: string, cents: Amount): void {
    const month = this.#monthNow();
    const key = spendKey(workspaceId, month);
    const before = this.#spent.get(key);
    const row: AiSpendRow = { workspaceId, month, cents: (before ?? 0n) + cents };
    this.#setSpent(workspaceId, key, row.cents, before);
    batch.totals.set(`ai\n${key}`, { verb: "put", table: "ai_spend", row });
  }

  /** Returns the refusal of an app at its budget for the gateway, else null. Only `spent >= budget` refuses. */
  gatewayRefusal(workspaceId: string, appId: string, budgetCents: Amount | null): Refusal | null {
    if (budgetCents === null || this.gatewaySpent(workspaceId, appId) < budgetCents) return null;
    return refusal(
      "ai_budget_exceeded",
      "The app's gateway budget of this month is used up (gateway.budgetCents of the catalog)",
    );
  }

  /** Cents that an app spent at the gateway in the running month, in both modes. */
  gatewaySpent(workspaceId: string, appId: string): Amount {
    return this.#spent.get(gatewayKey(workspaceId, appId, this.#monthNow())) ?? 0n;
  }

  /** Counts the cost of a call of the gateway and writes the total with the batch of its commit. */
  spendAtGatewayInto(batch: Pick<Batch, "totals">, workspaceId: string, { appId, cents }: GatewayCost): void {
    const month = this.#monthNow();
    const key = gatewayKey(workspaceId, appId, month);
    const before = this.#spent.get(key);
    const row: GatewaySpendRow = { workspaceId, appId, month, cents: (before ?? 0n) + cents };
    this.#setSpent(workspaceId, key, row.cents, before);
    batch.totals.set(`gateway\n${key}`, { verb: "put", table: "gateway_spend", row });
  }

  #setUsed(key: string, row: OperationsRow, before: OperationsRow | undefined): void {
    if (before === undefined) this.#note(row.workspaceId, key);
    this.#used.set(key, row);
  }

  #setSpent(workspaceId: string, key: string, cents: Amount, before: Amount | undefined): void {
    if (before === undefined) this.#note(workspaceId, key);
    this.#spent.set(key, cents);
  }

  #note(workspaceId: string, key: string): void {
    const keys = this.#keys.get(workspaceId);
    if (keys === undefined) this.#keys.set(workspaceId, new Set([key]));
    else keys.add(key);
  }

  #keyOf(workspaceId: string, mode: Mode, month: string): string {
    const last = this.#lastKey;
    if (last.workspaceId === workspaceId && last.mode === mode && last.month === month) return last.key;
    const key = keyOf(workspaceId, mode, month);
    this.#lastKey = { workspaceId, mode, month, key };
    return key;
  }

  #monthNow(): string {
    const now = this.#realNow();
    if (now >= this.#monthEndsAt) {
      this.#month = monthOf(now);
      const date = new Date(now);
      this.#monthEndsAt = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    }
    return this.#month;
  }
}

function spendKey(workspaceId: string, month: string): string {
  return `${workspaceId}\n${month}`;
}

function gatewayKey(workspaceId: string, appId: string, month: string): string {
  return `${workspaceId}\n${appId}\n${month}`;
}

function keyOf(workspaceId: string, mode: Mode, month: string): string {
  return `${workspaceId}\n${mode}\n${month}`;
}

/** Whether a cap of the whole workspace refused a decision. */
export function isAtCap(result: Result<unknown>): boolean {
  return !result.ok && result.refusal.code === "test_quota_exceeded";
}
