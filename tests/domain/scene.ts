// One user's state with a clock, so that each command of a test is one line. After every decision the auditor checks that
// the books balance, and the independent model must give the same answer and show the same user (`against_model.ts`).

import { type Amount, amountOf, numberOf } from "../../src/domain/values/amount.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { shownCount } from "../../src/domain/state/counter.ts";
import type { CreditSource } from "../../src/domain/state/credit.ts";
import { decide } from "../../src/domain/decide.ts";
import type { IdSource } from "../../src/domain/values/ids.ts";
import type { Context } from "../../src/domain/state/context.ts";
import type { WebhookMessage } from "../../src/domain/state/message.ts";
import { merge } from "../../src/domain/merging/merge.ts";
import { type MergeReport, NO_HISTORY } from "../../src/domain/merging/merge_report.ts";
import type { MeteringEvent } from "../../src/domain/state/event.ts";
import {
  type Catalog,
  type CatalogDocument,
  compileCatalog,
  type PackDocument,
  type PlanDocument,
} from "../../src/domain/catalog/catalog.ts";
import { type ModelDocument, withPriceRows } from "../../src/domain/catalog/price_row.ts";
import { type RateDocument, withRateRows } from "../../src/domain/catalog/rate_row.ts";
import type { Decision } from "../../src/domain/state/result.ts";
import { SharedValues } from "../../src/domain/state/shared_values.ts";
import { type Change, newUser, UserState } from "../../src/domain/state/user.ts";
import { AgainstModel, WEBHOOK } from "./against_model.ts";
import { Auditor } from "./auditor.ts";
import { countedIds } from "./decide_system.ts";
import {
  type Call,
  callOf,
  correctionOf,
  type Final,
  type Reported,
  type Size,
  usageOf,
} from "./scene_input.ts";
import { SceneRealm } from "./tree_calls.ts";
import { heightBelow } from "../support/memory_tree.ts";
import { PACKS } from "./short_catalog.ts";

export { type Call, type Final, type Reported, type Size, sizeOf } from "./scene_input.ts";
export { groupOf, packOf, PACKS, planOf } from "./short_catalog.ts";

/** Where ids of decisions begin that are not applied: they must not meet those that are. */
const NOT_APPLIED = 1_000_000;

/** What a scene starts with beside its plans. */
export interface Start extends Omit<CatalogDocument, "plans"> {
  readonly key?: number;
  readonly id?: string;
  /** A scene whose ids and books this one shares: another user of the same realm. */
  readonly beside?: Scene;
  /** Whether every decision is audited; not where decisions are timed. Default true. */
  readonly isAudited?: boolean;
  /** Whether every decision is compared with the model's; not over random commands. Default as `isAudited`. */
  readonly isCompared?: boolean;
  /** The types that a webhook listens to; absent for no webhook. */
  readonly listensTo?: readonly string[];
}

/** One user behind `decide`. */
export class Scene {
  state: UserState;
  now: number;
  /** Everything that was decided, oldest first. */
  readonly changes: Change[] = [];
  /** Metering operations of all decisions. */
  operations = 0;
  readonly auditor: Auditor;
  readonly #ids: IdSource;
  readonly #isAudited: boolean;
  /** Null where the model can't follow. */
  #model: AgainstModel | null;
  #catalog: Catalog;
  readonly #outbox: Context["outbox"];
  readonly #realm: SceneRealm<Scene>;
  /** Every rate there ever was. */
  #rated: readonly RateDocument[];
  /** Every price row there ever was. */
  #priced: readonly ModelDocument[];

  constructor(
    plans: readonly PlanDocument[],
    at = "2026-03-10T12:00:00.000Z",
    packs: readonly PackDocument[] = [],
    { key = 7, id = "u", beside, isAudited = true, isCompared = isAudited, listensTo, ...more }: Start = {},
  ) {
    const document = { plans, packs, ...more };
    this.#catalog = beside?.catalog ?? compileCatalog(document, 1);
    this.#model = beside === undefined
      ? isCompared ? new AgainstModel(document, listensTo) : null
      : beside.#model;
    this.#priced = more.models ?? [];
    this.#rated = more.rates ?? [];
    this.now = beside?.now ?? Date.parse(at);
    this.auditor = beside?.auditor ?? new Auditor();
    this.#isAudited = isAudited;
    this.#ids = beside === undefined ? countedIds(7) : beside.#ids;
    this.#outbox = listensTo === undefined
      ? null
      : { appId: "app_1", mode: "live", listeners: [{ webhookId: WEBHOOK, events: listensTo }] };
    this.state = new UserState({
      user: newUser(key, 1, id),
      recorded: false,
      aliases: [],
      subscriptions: [],
      counters: [],
      reservations: [],
      balances: [],
    }, new SharedValues());
    this.#realm = beside === undefined ? new SceneRealm() : beside.#realm;
    this.#realm.add(key, this);
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /** Puts another catalog in force, which the model doesn't follow. */
  set catalog(catalog: Catalog) {
    this.#catalog = catalog;
    this.#model = null;
  }

  at(time: string): this {
    this.now = Date.parse(time);
    return this;
  }

  wait(seconds: number): this {
    this.now += seconds * 1000;
    return this;
  }

  /** Puts other models and settings in force; the price rows of before keep their numbers. */
  reprice(
    plans: readonly PlanDocument[],
    more: Pick<CatalogDocument, "models" | "rates" | "settings">,
  ): this {
    this.#priced = withPriceRows(this.#priced, more.models ?? []);
    this.#rated = withRateRows(this.#rated, more.rates ?? []);
    const document = { plans, packs: PACKS, ...more };
    this.#catalog = compileCatalog(document, this.catalog.version + 1, this.#priced, this.#rated);
    this.#model?.apply(document);
    return this;
  }

  /** Decides and applies. */
  do<Name extends CommandName>(
    name: Name,
    input: Commands[Name]["input"],
    balancesLeft: number | null = null,
  ): Decision<Commands[Name]["answer"]> {
    const context = { ...this.#context(this.#ids), balancesLeft };
    const above = this.#realm.levelsOf(this, name, input);
    const decision = decide(this.state, name, input, context, above.map(({ state }) => state));
    this.#take(decision.changes, above);
    this.operations += decision.operations;
    if (this.#model?.decided(name, input, decision, this.#asked(balancesLeft)) === false) this.#model = null;
    return decision;
  }

  /** This user now. What is decided with it is not applied. */
  #asked(balancesLeft: number | null = null) {
    const above = this.#realm.levelsOf(this, "user", {}).map(({ state }) => state);
    return {
      state: this.state,
      above,
      context: { ...this.#context(countedIds(1_000, NOT_APPLIED)), balancesLeft },
    };
  }

  #context(ids: IdSource): Context {
    const { now, catalog } = this;
    return { now, catalog, ids, balancesLeft: null, outbox: this.#outbox };
  }

  /** The messages that this user's decisions recorded, oldest first. */
  get messages(): readonly WebhookMessage[] {
    return this.changes.flatMap((change) => change.table === "webhook_messages" ? [change.row] : []);
  }

  #take(changes: readonly Change[], above: readonly Scene[] = []): void {
    const scenes = [this, ...above];
    for (const { state } of scenes) state.apply(changes);
    if (above.length === 0) this.changes.push(...changes);
    else for (const scene of scenes) scene.changes.push(...changes.filter((change) => isOf(scene, change)));
    if (!this.#isAudited) return;
    this.auditor.take(changes, this.now);
    for (const { state } of scenes) this.auditor.checkUser(state);
  }

  /** Puts this user under another one of its realm, or at the top; the code of a refusal, or "ok". */
  under(parent: Scene | null, limits?: Readonly<Record<string, number>> | null): string {
    // So that the model knows its name.
    parent?.do("settle", {});
    return this.code("setParent", {
      parentKey: parent?.state.user.key ?? null,
      heightBelow: heightBelow(this.#realm, this.state.keys),
      ...limits === undefined ? {} : {
        memberLimits: limits &&
          Object.fromEntries(Object.entries(limits).map(([id, quota]) => [id, amountOf(quota)])),
      },
    });
  }

  /** The answer of a command that must not be refused. */
  ask<Name extends CommandName>(name: Name, input: Commands[Name]["input"]): Commands[Name]["answer"] {
    const { result } = this.do(name, input);
    if (!result.ok) throw new Error(`${name} was refused: ${result.refusal.code}`);
    return result.answer;
  }

  /** The code of a command's refusal; "ok" where it was none. */
  code<Name extends CommandName>(name: Name, input: Commands[Name]["input"]): string {
    const { result } = this.do(name, input);
    return result.ok ? "ok" : result.refusal.code;
  }

  subscribe(plan: string, more: Partial<Commands["subscribe"]["input"]> = {}): string {
    return this.ask("subscribe", subscription(plan, more)).row.id;
  }

  /** A subscription of a payment provider. */
  pay(plan: string, externalId: string, more: Partial<Commands["subscribe"]["input"]> = {}): string {
    return this.subscribe(plan, { provider: "stripe", externalId, ...more });
  }

  cancel(more: Partial<Commands["cancel"]["input"]> = {}): string {
    return this.code("cancel", { provider: null, externalId: null, endsAt: null, reason: null, ...more });
  }

  /** Reserves; the id of the reservation, or null where it was not allowed. */
  reserve(size: Size | number, { ttlMs = null, ...call }: Call & { ttlMs?: number | null } = {}) {
    const { hold } = this.ask("reserve", { ...callOf(size, call), ttlMs, prompt: null });
    return hold?.reservationId ?? null;
  }

  /** Reserves, which must be allowed; the id. */
  hold(size: Size | number, more: Call & { ttlMs?: number | null } = {}): string {
    const id = this.reserve(size, more);
    if (id === null) throw new Error(`A reserve was refused: ${this.reason(size, more)}`);
    return id;
  }

  /** What can-use says: "ok" or the reason why not. */
  reason(size: Size | number, call: Call = {}): string {
    const { allowed, reasons } = this.ask("canUse", callOf(size, call));
    return allowed ? "ok" : reasons.join(" ");
  }

  /** Can-use as it answers. */
  canUse(size: Size | number, call: Call = {}) {
    return this.ask("canUse", callOf(size, call));
  }

  /** Explain as it answers. */
  explain(size: Size | number, call: Call = {}) {
    return this.ask("explain", callOf(size, call));
  }

  /** Tracks; the match status of the event. */
  track(
    size: Size | number,
    { costCents, usage, ...call }: Call & { costCents?: number; usage?: Reported | undefined } = {},
  ): string {
    const cost = costCents === undefined ? null : amountOf(costCents);
    const from = this.changes.length;
    const told = { costCents: cost, usage: usageOf(usage), prompt: null, response: null };
    this.do("track", { ...callOf(size, call), ...told });
    return eventsIn(this.changes.slice(from))[0]?.matchStatus ?? "none";
  }

  /** Commits, which must work: the counters of the hold's window, "recharged" where it was, and what is uncovered. */
  commit(reservationId: string, final: Final = {}) {
    const answer = this.ask("commit", this.#commitOf(reservationId, final));
    const { groups, recharged, cost, warnings } = answer;
    return {
      warnings,
      cost: [numberOf(cost.cents), cost.model],
      recharged,
      groups: Object.fromEntries(groups.map(({ groupId, current }) => [groupId, numberOf(current)])),
      overflow: groups.filter(({ overflow }) => overflow).map(({ groupId }) => groupId),
      uncovered: numbersOf(this.event().uncovered),
    };
  }

  /** The code of a commit: "ok" where it works. */
  commitCode(reservationId: string, final: Final = {}): string {
    return this.code("commit", this.#commitOf(reservationId, final));
  }

  #commitOf(reservationId: string, { extra, actual, costCents, usage }: Final): Commands["commit"]["input"] {
    return {
      reservationId,
      extra: correctionOf(extra),
      actual: correctionOf(actual),
      costCents: costCents === undefined ? null : amountOf(costCents),
      usage: usageOf(usage),
      response: null,
    };
  }

  /** The code of a release: "ok" where it works. */
  release(reservationId: string): string {
    return this.code("release", { reservationId, reason: null, errorCode: null });
  }

  /** Grants a pack; the ids of the balances, or the code of the refusal alone. */
  grant(
    pack: string,
    quantity: number | "malformed" | null = null,
    more: Partial<Omit<Commands["grant"]["input"], "source">> & {
      source?: CreditSource;
      balancesLeft?: number;
    } = {},
  ): string[] {
    const { balancesLeft = null, ...rest } = more;
    const { result } = this.do("grant", {
      pack,
      quantity: typeof quantity === "number" ? amountOf(quantity) : quantity,
      externalRef: null,
      expiresAt: undefined,
      source: "purchase",
      notes: null,
      ...rest,
    }, balancesLeft);
    return result.ok ? result.answer.balances.map(({ row }) => row.id) : [result.refusal.code];
  }

  /** Grants a pack without items; the id of its balance. */
  fund(pack: string, quantity: number, more: Parameters<Scene["grant"]>[2] = {}): string {
    const [id] = this.grant(pack, quantity, more);
    return id as string;
  }

  revoke(balanceId: string, reason: string | null = null): string {
    return this.code("revoke", { balanceId, reason });
  }

  /** What is left of balances, in their order. */
  left(...balanceIds: string[]): number[] {
    this.ask("settle", {});
    return balanceIds.map((id) => numberOf(this.state.balances.get(id)?.remaining ?? -1_000_000n));
  }

  /** The last rows of the ledger in the order in which they were written: balance, delta and reason. */
  ledger(count = Infinity): [string, number, string][] {
    const rows = this.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row] : []);
    return rows.slice(-count).map(({ balanceId, delta, reason }) => [balanceId, numberOf(delta), reason]);
  }

  /** The event that was recorded last. */
  event(): MeteringEvent {
    const event = eventsIn(this.changes).at(-1);
    if (event === undefined) throw new Error("No event was recorded");
    return event;
  }

  /** The types of the subscription history, oldest first, from a place on. */
  history(from = 0): string[] {
    return this.changes.flatMap((each) => each.table === "subscription_events" ? [each.row.type] : [])
      .slice(from);
  }

  /** The counts of the running windows by group. */
  counts(): Record<string, number> {
    const { counters } = this.ask("usage", { event: null });
    return Object.fromEntries(
      counters.map(({ group, counter }) => [group.id, numberOf(shownCount(counter))]),
    );
  }

  /** The costs of the running windows by group. */
  costs(): Record<string, number> {
    const { counters } = this.ask("usage", { event: null });
    return Object.fromEntries(counters.map(({ group, counter }) => [group.id, numberOf(counter.costCents)]));
  }

  /**
   * Makes this user an alias of another, after a dry run that must report the same. The states stay as the actors
   * leave them: all of it is the other one's.
   */
  mergeInto(to: Scene): MergeReport {
    const context = this.#context(to.#ids);
    const history = this.#model?.historyOf(this.#asked()) ?? NO_HISTORY;
    const input = {
      isDryRun: false,
      mode: "live",
      history,
      analytics: "linked",
      tree: this.#realm.placesOf(this, to),
    } as const;
    const dry = merge(this.state, to.state, { ...input, isDryRun: true }, {
      ...context,
      ids: countedIds(1_000, NOT_APPLIED),
    });
    const decision = merge(this.state, to.state, input, context);
    const { result, changes, operations } = decision;
    if (!result.ok || !dry.result.ok) throw new Error("The domain refuses no merge");
    const { report } = result.answer;
    const expected = JSON.stringify({ ...report, mergeId: null, dryRun: true });
    if (JSON.stringify(dry.result.answer.report) !== expected) throw new Error("A dry run told otherwise");
    to.#take(changes);
    to.operations += operations;
    this.#realm.add(this.state.user.key, to);
    this.#model?.merged(report, decision, this.#asked(), to.#asked());
    return report;
  }
}

/** A subscription's input from its plan and what differs from the default row. */
export function subscription(
  plan: string,
  more: Partial<Commands["subscribe"]["input"]> = {},
): Commands["subscribe"]["input"] {
  return {
    plan,
    provider: null,
    externalId: null,
    customLimits: undefined,
    customFeatures: undefined,
    startsAt: null,
    endsAt: null,
    cycleStart: undefined,
    quantity: undefined,
    trial: undefined,
    ...more,
  };
}

/** Whether a row belongs to the user of a scene. */
function isOf({ state: { user } }: Scene, { table, row }: Change): boolean {
  return (table === "users" ? row.key : table === "merges" ? row.toKey : row.userKey) === user.key;
}

/** The events among changes. */
export function eventsIn(changes: readonly Change[]): MeteringEvent[] {
  return changes.flatMap((each) => each.table === "events" ? [each.row] : []);
}

/** Amounts by name as numbers. */
export function numbersOf(amounts: Readonly<Partial<Record<string, Amount>>>): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, numberOf(amount ?? 0n)]));
}
