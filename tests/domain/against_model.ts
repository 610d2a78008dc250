// Runs the scenes of one realm against the independent model of `tests/model` too. Each command is sent to the model as a
// wire request. The model must give the same answer, and must then show the same user, credits, ledger, events, messages
// and metering operations. So each expectation of a scene holds for both sides.

import { deepEqual, equal } from "node:assert/strict";
import { showReport } from "../../routes/calls/customers.ts";
import { showBalance } from "../../routes/calls/shown_records.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Context } from "../../src/domain/state/context.ts";
import { shownOf } from "../../src/domain/credits/balances.ts";
import { listBalances } from "../../src/domain/state/credit.ts";
import { decide } from "../../src/domain/decide.ts";
import { type HistoryCounts, type MergeReport, NO_HISTORY } from "../../src/domain/merging/merge_report.ts";
import type { Catalog, CatalogDocument } from "../../src/domain/catalog/catalog.ts";
import type { Decision } from "../../src/domain/state/result.ts";
import type { Change, UserState } from "../../src/domain/state/user.ts";
import type {
  CatalogDocument as ModelDocument,
  ModelOptions,
  ModelReply,
  ModelRequest,
  WireData,
} from "../model/document.ts";
import { compare, Model } from "../model/model.ts";
import { replyOf, SHOW, showEntry, showEvent, showListed, showUser } from "./wire_answer.ts";
import { requestOf } from "./wire_request.ts";

/** The webhook that every scene records messages for. */
export const WEBHOOK = "whk_1";

/** How many events a page has at most. */
const EVENTS_SHOWN = 100;

/** The user of a scene at one moment, and what decisions know beside it. */
interface Asked {
  readonly state: UserState;
  /** The users above, nearest first. */
  readonly above: readonly UserState[];
  readonly context: Context;
}

type Table = "events" | "subscription_events" | "credit_ledger" | "reservations" | "webhook_messages";
type Row<Name extends Table> = Extract<Change, { table: Name }>["row"];

/** The model of one realm, and the rows that the domain has written there. */
export class AgainstModel {
  readonly #options: ModelOptions = {};
  readonly #model: Model;
  readonly #names = new Map<number, string>();
  readonly #changes: Change[] = [];
  #issued = 0;
  /** By UTC month. */
  readonly #operations = new Map<string, number>();

  constructor({ plans = [], ...document }: CatalogDocument, listensTo: readonly string[] = []) {
    this.#model = new Model({ ...document, plans } as ModelDocument, this.#options);
    if (listensTo.length > 0) this.#model.listen([{ webhookId: WEBHOOK, events: [...listensTo] }]);
  }

  /** Puts other models and settings in force. */
  apply({ plans = [], ...document }: CatalogDocument): void {
    this.#model.apply({ ...document, plans } as ModelDocument);
  }

  /** Compares a decision with the model's; false where the model doesn't know the command. */
  decided<Name extends CommandName>(
    name: Name,
    input: Commands[Name]["input"],
    { result, changes, operations, issued }: Decision<Commands[Name]["answer"]>,
    asked: Asked,
  ): boolean {
    const { state, context: { now, balancesLeft } } = asked;
    const { key, id } = state.user;
    this.#names.set(key, id);
    const request = requestOf(name, input, id, (of) => this.#names.get(of) as string);
    if (request === null) return false;
    this.#options.mode = balancesLeft === null ? "live" : "test";
    this.#options.testCreditBalanceCap = balancesLeft === null ? null : this.#issued + balancesLeft;
    this.#take(changes, operations, now);
    this.#issued += issued;
    if (name === "settle" || name === "consent") this.#model.settle(now);
    else if (name === "user") this.#compareUser(asked);
    else this.#compare(request, replyOf(result, showOf(name, input), asked.context.catalog), now);
    this.#options.mode = "live";
    this.#compareAll(changes, asked);
    return true;
  }

  /** Compares a merge with the model's, after a dry run. */
  merged(report: MergeReport, { changes, operations }: Decision<unknown>, from: Asked, to: Asked): void {
    const { now } = from.context;
    for (const { state: { user } } of [from, to]) this.#names.set(user.key, user.id);
    const pair = { from: from.state.user.id, to: to.state.user.id };
    const reply = (mergeId: string | null): ModelReply => {
      const data = showReport(pair, { ...report, mergeId, dryRun: mergeId === null });
      return { status: 200, data: JSON.parse(JSON.stringify(data)) };
    };
    this.#compare({ op: "alias", input: { ...pair, dryRun: true } }, reply(null), now);
    this.#compare({ op: "alias", input: pair }, reply(report.mergeId), now);
    for (const [key, name] of this.#names) if (name === pair.from) this.#names.set(key, pair.to);
    this.#take(changes, operations, now);
    this.#compareAll(changes, { ...to, context: from.context });
  }

  /** How many rows of history a user has, with what is due. */
  historyOf({ state, context }: Asked): HistoryCounts {
    const due = decide(state, "settle", {}, context).changes;
    const { id } = state.user;
    const count = (table: Table) => this.#rows(table, id, due).length;
    const settled = new Map(this.#rows("reservations", id, due).map((row) => [row.id, row.status]));
    return {
      ...NO_HISTORY,
      events: count("events"),
      reservations: [...settled.values()].filter((status) => status !== "held").length,
      subscriptionEvents: count("subscription_events"),
      creditLedger: count("credit_ledger"),
    };
  }

  #take(changes: readonly Change[], operations: number, now: number): void {
    this.#changes.push(...changes);
    const month = monthOf(now);
    this.#operations.set(month, (this.#operations.get(month) ?? 0) + operations);
  }

  /** Rows of a user in the order in which they were written, with those of further changes. */
  #rows<Name extends Table>(table: Name, userId: string, more: readonly Change[] = []): Row<Name>[] {
    return [...this.#changes, ...more].flatMap((change) =>
      change.table === table && this.#names.get((change.row as Row<Name>).userKey as number) === userId
        ? [change.row as Row<Name>]
        : []
    );
  }

  #compare(request: ModelRequest, observed: ModelReply, now: number): void {
    const predicted = this.#model.handle(structuredClone(request), now, structuredClone(observed));
    const differences = compare(predicted, observed);
    if (differences.length > 0) {
      throw new Error(
        [`${request.op}: decide differs from the model`, ...differences, JSON.stringify(request)].join("\n"),
      );
    }
  }

  #compareAll(changes: readonly Change[], asked: Asked): void {
    const { state: { user }, context: { now } } = asked;
    const recorded = changes.flatMap((change) =>
      change.table === "webhook_messages"
        ? [{ webhookId: change.row.webhookId, ...JSON.parse(change.row.body) }]
        : []
    );
    deepEqual(this.#model.take(recorded), []);
    // What the command itself made due is settled by the next one.
    if (user.dueAt !== null && user.dueAt <= now) return;
    equal(this.#model.operationsUsed(now), this.#operations.get(monthOf(now)), "metering operations");
    deepEqual(this.#model.waiting(WEBHOOK, user.id, now), []);
    this.#compareUser(asked);
  }

  /** Compares everything that can be read of a user. */
  #compareUser({ state, above, context }: Asked): void {
    const { now, catalog } = context;
    const { id: userId } = state.user;
    const { result } = decide(state, "user", {}, context, above);
    const show = (answer: Commands["user"]["answer"]) =>
      showUser(answer, this.#rows("subscription_events", userId), catalog);
    this.#compare({ op: "users", input: { userId } }, replyOf(result, show, catalog), now);
    const balances = listBalances([...state.balances.values()], { event: null, includeExpired: true }, now);
    const credits = balances.map((row) => showBalance(shownOf(row, catalog), now));
    this.#compare(
      { op: "credits", input: { userId, includeExpired: true } },
      { status: 200, data: { credits } },
      now,
    );
    const ledger = this.#rows("credit_ledger", userId).sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
    const page = { entries: ledger.map(showEntry), nextCursor: null };
    this.#compare({ op: "ledger", input: { userId, limit: 500 } }, { status: 200, data: page }, now);
    this.#compareEvents(userId, catalog.promptLogging, now);
  }

  #compareEvents(userId: string, isLogged: boolean, now: number): void {
    const rows = this.#rows("events", userId);
    const events = rows.slice(-EVENTS_SHOWN).map((row) => showListed(row, userId)).reverse();
    const page = { limit: EVENTS_SHOWN, offset: 0 };
    const data = { events, ...page, logPromptsEnabled: isLogged };
    this.#compare({ op: "events", input: { userId, ...page } }, { status: 200, data }, now);
    for (const row of rows.slice(-3)) {
      const shown = { status: 200, data: showEvent(row, (key) => this.#names.get(key), isLogged) };
      this.#compare({ op: "event", input: { eventId: row.id } }, shown, now);
    }
  }
}

function monthOf(now: number): string {
  return new Date(now).toISOString().slice(0, 7);
}

function showOf<Name extends CommandName>(name: Name, input: Commands[Name]["input"]) {
  if ("balanceId" in input && name === "revoke") return () => ({ balanceId: input.balanceId, remaining: 0 });
  return SHOW[name as keyof typeof SHOW] as (answer: Commands[Name]["answer"], catalog: Catalog) => WireData;
}
