// The pure domain dressed up as a system that the model's workload can drive: users' states, `decide`, `apply`, and
// answers in the wire's shape. Ids and clock are deterministic. Every decision is checked: it changed
// nothing by itself, it is the same when asked again, and its changes keep the books balanced (`Auditor`).

import { type RateDocument, withRateRows } from "../../src/domain/catalog/rate_row.ts";
import assert from "node:assert/strict";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { decide } from "../../src/domain/decide.ts";
import { ID_PREFIX, type IdKind, type IdSource, ownedId, ownerOf } from "../../src/domain/values/ids.ts";
import { merge, type MergeInput } from "../../src/domain/merging/merge.ts";
import type { MergeReport } from "../../src/domain/merging/merge_report.ts";
import type { MeteringEvent } from "../../src/domain/state/event.ts";
import { type Catalog, compileCatalog } from "../../src/domain/catalog/catalog.ts";
import type { WebhookMessage } from "../../src/domain/state/message.ts";
import type { Listener, Outbox } from "../../src/domain/state/outbox.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { SubscriptionEvent } from "../../src/domain/state/subscription.ts";
import { type ModelDocument, withPriceRows } from "../../src/domain/catalog/price_row.ts";
import type { Decision } from "../../src/domain/state/result.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import { SharedValues } from "../../src/domain/state/shared_values.ts";
import { type Change, newUser, UserState } from "../../src/domain/state/user.ts";
import { MERGE_LIMITS } from "../../src/process/limits.ts";
import { encodeChanges } from "../../src/storage/rows/tables.ts";
import type { CatalogDocument, Input, ModelReply, ModelRequest, WireData } from "../model/document.ts";
import { runRows } from "../support/memory_runs.ts";
import { MemoryTables } from "../support/memory_store.ts";
import { answerAlias } from "./alias_calls.ts";
import { Auditor } from "./auditor.ts";
import { answerCredits } from "./credit_calls.ts";
import { answerProvider, isOfProvider } from "./provider_calls.ts";
import { assertSame, deepFreeze, referencesOf } from "./purity.ts";
import { answerRuns } from "./run_calls.ts";
import { answerOverage } from "./overage_calls.ts";
import type { OverageHour } from "../../src/domain/state/overage.ts";
import { answerParent, levelsOf, partsNamed, placesOf } from "./tree_calls.ts";
import { replyOf, SHOW, showEvent, showListed, showUser } from "./wire_answer.ts";
import {
  amountOrNull,
  callOf,
  commitOf,
  rowIdsOf,
  scheduleOf,
  subscribeOf,
  textOrNull,
  timeOrNull,
  usageInputOf,
  usageOf,
  userOf,
} from "./wire_input.ts";

interface DecideOptions {
  readonly catalog: CatalogDocument;
  /** Settles what falls due at its own moment, for every user, in place of at the next call. */
  readonly eager?: boolean;
  /** Makes a user's state anew from the tables before every so many calls. */
  readonly reloadEvery?: number;
  /** Whether users are merged: ids then grow over all of them, as in the service. */
  readonly merges?: boolean;
  /** Whether users have parents: ids grow over all of them then too. */
  readonly trees?: boolean;
  readonly mode?: "live" | "test";
  /** How many balances may be issued. */
  readonly testCreditBalanceCap?: number | null;
}

/** Ids by kind and user: the same calls give the same ids, however calls of other users lie between them. */
export function countedIds(user: number, after = 0): IdSource {
  const made = new Map<string, number>();
  const next = (kind: IdKind): string => {
    const number = (made.get(kind) ?? after) + 1;
    made.set(kind, number);
    return String(number).padStart(8, "0");
  };
  return {
    next: (kind) => `${ID_PREFIX[kind]}${user}_${next(kind)}`,
    nextOwned: (kind, owner) => ownedId(kind, owner, next(kind).padStart(20, "0")),
  };
}

/** Users behind `decide`. */
export class DecideSystem {
  catalog: Catalog;
  readonly tables = new MemoryTables();
  readonly auditor = new Auditor();
  readonly states = new Map<string, UserState>();
  readonly events: MeteringEvent[] = [];
  readonly history = new Map<number, SubscriptionEvent[]>();
  /** Everything that was recorded for webhooks, in its order. */
  readonly messages: WebhookMessage[] = [];
  /** The listeners that messages are recorded for now. */
  listeners: readonly Listener[] = [];
  /** What messages told of overage. */
  readonly soldHours: OverageHour[] = [];
  operations = 0;
  issued = 0;
  readonly #options: DecideOptions;
  readonly #ids = new Map<number, IdSource>();
  readonly #names = new Map<number, string>();
  readonly aliases = new Map<string, string>();
  readonly #sharedIds = countedIds(0);
  /** Every price row there ever was. */
  #priced: readonly ModelDocument[];
  /** Every rate there ever was. */
  #rated: readonly RateDocument[];
  #calls = 0;
  #lastKey = 0;

  constructor(options: DecideOptions) {
    this.#options = options;
    this.#priced = options.catalog.models ?? [];
    this.#rated = options.catalog.rates ?? [];
    this.catalog = compileCatalog({ ...options.catalog, composeTypes: [] }, 1);
  }

  /** Puts another catalog in force; holds go on naming the price rows that they were made under. */
  apply(document: CatalogDocument): void {
    this.#priced = withPriceRows(this.#priced, document.models ?? []);
    this.#rated = withRateRows(this.#rated, document.rates ?? []);
    const { version } = this.catalog;
    this.catalog = compileCatalog({ ...document, composeTypes: [] }, version + 1, this.#priced, this.#rated);
  }

  /** Answers a request at a moment. */
  send({ op, input }: ModelRequest, now: Millis): ModelReply {
    if (this.#options.eager) this.settleEagerly(now);
    const { reloadEvery = 0 } = this.#options;
    if (reloadEvery > 0 && ++this.#calls % reloadEvery === 0) {
      for (const userId of this.states.keys()) this.#load(userId, now);
    }
    if (isOfProvider(op)) return answerProvider(this, { op, input }, now);
    switch (op) {
      case "createRun":
      case "endRun":
      case "getRun":
      case "listRuns":
        return answerRuns(this, { op, input }, now);
      case "events":
        return this.#listEvents(input);
      case "event":
        return this.#showEvent(input);
      case "users":
        return this.#showUser(input, now);
      case "grant":
      case "extend":
      case "revoke":
      case "credits":
      case "ledger":
        return answerCredits(this, { op, input }, now);
      case "parent":
        return answerParent(this, input, now);
      case "alias":
      case "aliasBatch":
      case "customer":
        return answerAlias(this, { op, input }, now);
      default:
        return this.#call(op, input, now);
    }
  }

  /** Settles everything that falls due up to a moment, each at its own. */
  settleEagerly(now: Millis): void {
    for (const id of this.states.keys()) {
      while (((this.states.get(id) as UserState).user.dueAt ?? Infinity) <= now) {
        this.run(id, "settle", {}, (this.states.get(id) as UserState).user.dueAt as Millis);
      }
    }
  }

  /** Puts a command to a user and takes over what it yields. */
  run<Name extends CommandName>(
    userId: string,
    name: Name,
    input: Commands[Name]["input"],
    now: Millis,
  ): Decision<Commands[Name]["answer"]>["result"] {
    const state = this.stateOf(userId, now);
    this.#admitRun(state, input);
    const above = levelsOf(this, state, name, input, now);
    for (const part of partsNamed(state, input)) this.#admitPart(part);
    const before = [state, ...above].flatMap(referencesOf);
    const { key } = state.user;
    const ids = this.#idsOf(key);
    const { testCreditBalanceCap: cap = null } = this.#options;
    const balancesLeft = cap === null ? null : Math.max(cap - this.issued, 0);
    const context = { now, catalog: this.catalog, ids, balancesLeft, outbox: this.#outbox() };
    const { noting, again } = notedIds(ids);
    const decision = decide(state, name, input, { ...context, ids: noting }, above);
    const repeated = decide(state, name, input, { ...context, ids: again }, above);
    assert.deepEqual(repeated, decision, "the same inputs give another decision");
    assertSame([state, ...above].flatMap(referencesOf), before);
    const { result, changes, operations, issued } = decision;
    this.#takeOver([state, ...above], changes, now);
    this.operations += operations;
    this.issued += issued;
    return result;
  }

  /** Reads a run that a command names and that has left memory. */
  #admitRun(state: UserState, input: object): void {
    const { runId, parentRunId = runId } = input as { runId?: string | null; parentRunId?: string | null };
    if (typeof parentRunId !== "string" || state.runs.has(parentRunId)) return;
    state.admit(runRows(this.tables, state.keys, parentRunId));
  }

  /** A user's id by its internal number. */
  nameOf(key: number): string | undefined {
    return this.#names.get(key);
  }

  stateOf(userId: string, now: Millis): UserState {
    const canonical = this.canonicalOf(userId);
    return this.states.get(canonical) ?? this.#load(canonical, now);
  }

  stateOfKey(key: number): UserState {
    return this.states.get(this.#names.get(key) as string) as UserState;
  }

  /** Loads a settled part of a hold that has left memory. */
  #admitPart(id: string): void {
    const level = this.stateOfKey(ownerOf("reservation", id) as number);
    if (!level.reservations.has(id)) level.admit(this.tables.loadReservation(level.keys, id));
  }

  /** The canonical id behind an id. */
  canonicalOf(userId: string): string {
    return this.aliases.get(userId) ?? userId;
  }

  /** Decides a merge of two canonical users and, unless it is a dry run, takes over what it yields. */
  merge(
    from: string,
    to: string,
    input: Omit<MergeInput, "history" | "mode" | "tree">,
    now: Millis,
  ): MergeReport | Refusal {
    for (const id of [from, to]) this.run(id, "settle", {}, now);
    const [ending, into] = [this.stateOf(from, now), this.stateOf(to, now)];
    for (const state of [ending, into]) state.admit(this.tables.loadWhole(state.user.key));
    const before = [ending, into].flatMap(referencesOf);
    const history = this.tables.countHistory(ending.keys, MERGE_LIMITS.historyRowsMax);
    const ids = this.#idsOf(into.user.key);
    const context = { now, catalog: this.catalog, ids, balancesLeft: null, outbox: this.#outbox() };
    const { mode = "live", trees = false } = this.#options;
    const tree = trees ? placesOf(this, this.tables, ending, into) : null;
    const { result, changes, operations } = merge(ending, into, { ...input, mode, history, tree }, context);
    assertSame([ending, into].flatMap(referencesOf), before);
    if (!result.ok) return result.refusal;
    if (input.isDryRun) return result.answer.report;
    this.#takeOver([into], changes, now);
    this.operations += operations;
    this.#names.set(ending.user.key, to);
    for (const { key, id } of into.aliases) {
      this.aliases.set(id, to);
      this.#names.set(key, to);
    }
    this.states.delete(from);
    const rows = [...this.history.get(ending.user.key) ?? [], ...this.history.get(into.user.key) ?? []];
    this.history.set(into.user.key, rows.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1)));
    this.tables.moveHistory();
    return result.answer.report;
  }

  #takeOver(states: readonly UserState[], changes: readonly Change[], now: Millis): void {
    for (const change of changes) deepFreeze(change);
    for (const state of states) state.apply(changes);
    if (changes.length > 0) this.tables.write(encodeChanges(changes));
    this.auditor.take(changes, now);
    for (const state of states) this.auditor.checkUser(state);
    for (const change of changes) {
      if (change.table === "overage_hours") this.soldHours.push(change.row);
      if (change.table === "events") this.events.push(change.row);
      if (change.table === "webhook_messages") this.messages.push(change.row);
      if (change.table === "subscription_events") this.history.get(change.row.userKey)?.push(change.row);
    }
  }

  #outbox(): Outbox | null {
    const { mode = "live" } = this.#options;
    const { listeners } = this;
    return listeners.length === 0 ? null : { appId: "app_1", mode, listeners };
  }

  #idsOf(key: number): IdSource {
    return this.#options.merges === true || this.#options.trees === true
      ? this.#sharedIds
      : this.#ids.get(key) as IdSource;
  }

  /** A user's state from the tables, as an actor starts. */
  #load(userId: string, now: Millis): UserState {
    const known = this.states.get(userId);
    const rows = this.tables.load({ realm: 1, id: userId }, now);
    const key = known?.user.key ?? ++this.#lastKey;
    const none = { aliases: [], subscriptions: [], counters: [], reservations: [], balances: [] };
    const start = rows ?? { user: newUser(key, 1, userId), ...none };
    const state = new UserState({ ...start, recorded: rows !== null }, new SharedValues());
    if (known === undefined) {
      this.#ids.set(key, countedIds(key));
      this.#names.set(key, userId);
      this.history.set(key, []);
    }
    this.states.set(userId, state);
    return state;
  }

  #call(op: ModelRequest["op"], input: Input, now: Millis): ModelReply {
    const userId = userOf(input);
    switch (op) {
      case "reserve": {
        const ttlMs = typeof input["ttlSeconds"] === "number" ? input["ttlSeconds"] * 1000 : null;
        return this.ask(userId, "reserve", { ...callOf(input), ttlMs, prompt: null }, now, SHOW.reserve);
      }
      case "canUse":
        return this.ask(userId, "canUse", callOf(input), now, SHOW.canUse);
      case "explain":
        return this.ask(userId, "explain", callOf(input), now, SHOW.explain);
      case "track": {
        const costCents = amountOrNull(input["costCents"]);
        const usage = usageOf(input);
        const command = { ...callOf(input), costCents, usage, prompt: null, response: null };
        return this.ask(userId, "track", command, now, SHOW.track);
      }
      case "commit":
        return this.#settle(input, "commit", commitOf(input), now, SHOW.commit);
      case "release": {
        const cut = (value: unknown, length: number) =>
          typeof value === "string" ? [...value].slice(0, length).join("") : null;
        const command = {
          reservationId: String(input["reservationId"]),
          reason: cut(input["reason"], 500),
          errorCode: cut(input["errorCode"], 100),
          response: null,
        };
        return this.#settle(input, "release", command, now, SHOW.release);
      }
      case "unschedule":
        return this.ask(userId, "schedule", { ...rowIdsOf(input), change: null }, now, SHOW.schedule);
      case "subscribe":
        if (input["at"] !== undefined) {
          return this.ask(userId, "schedule", scheduleOf(input), now, SHOW.schedule);
        }
        return this.ask(userId, "subscribe", subscribeOf(input), now, SHOW.subscribe);
      case "cancel": {
        const endsAt = timeOrNull(input["endsAt"]);
        const command = { ...rowIdsOf(input), endsAt, reason: textOrNull(input["reason"]) };
        return this.ask(userId, "cancel", command, now, SHOW.cancel);
      }
      case "spendCap": {
        const { groupId, max } = input as { groupId: string; max: number | null };
        return this.ask(userId, "spendCap", { groupId, max: amountOrNull(max) }, now, SHOW.spendCap);
      }
      case "overage":
        return answerOverage(this, input, now);
      default:
        return this.ask(userId, "usage", usageInputOf(input), now, SHOW.usage);
    }
  }

  ask<Name extends CommandName>(
    userId: string,
    name: Name,
    command: Commands[Name]["input"],
    now: Millis,
    show: (answer: Commands[Name]["answer"], catalog: Catalog) => WireData,
  ): ModelReply {
    return replyOf(this.run(userId, name, command, now), show, this.catalog);
  }

  /** A settlement finds its user by the reservation's id; rows that left memory are read again. */
  #settle<Name extends "commit" | "release">(
    input: Input,
    name: Name,
    command: Commands[Name]["input"],
    now: Millis,
    show: (answer: Commands[Name]["answer"]) => WireData,
  ): ModelReply {
    const id = String(input["reservationId"]);
    const owner = ownerOf("reservation", id);
    const userId = owner === null ? undefined : this.#names.get(owner);
    if (owner === null || userId === undefined) return { status: 404, code: "not_found" };
    const state = this.stateOf(userId, now);
    if (!state.reservations.has(id)) state.admit(this.tables.loadReservation(state.keys, id));
    const reply = this.ask(userId, name, command, now, show);
    if (this.#options.reloadEvery !== undefined) {
      for (const part of state.reservations.partsOf(id)) {
        this.stateOfKey(ownerOf("reservation", part) as number).forget(part);
      }
      state.forget(id);
    }
    return reply;
  }

  #listEvents(input: Input): ModelReply {
    const { userId, eventType, limit = 20, offset = 0 } = input as Record<string, string & number>;
    const wanted = this.events.toReversed().filter((event) =>
      (userId === undefined || this.#names.get(event.userKey) === this.canonicalOf(userId)) &&
      (eventType === undefined || event.type === eventType) &&
      (input["runId"] === undefined || event.runId === input["runId"])
    );
    const events = wanted.slice(offset, offset + limit)
      .map((event) => showListed(event, this.#names.get(event.userKey)));
    return { status: 200, data: { events, limit, offset, logPromptsEnabled: this.catalog.promptLogging } };
  }

  #showEvent(input: Input): ModelReply {
    const event = this.events.find(({ id }) => id === input["eventId"]);
    if (event === undefined) return { status: 404, code: "not_found" };
    return {
      status: 200,
      data: showEvent(event, (key) => this.#names.get(key), this.catalog.promptLogging),
    };
  }

  #showUser(input: Input, now: Millis): ModelReply {
    return this.ask(
      userOf(input),
      "user",
      {},
      now,
      (answer, catalog) => showUser(answer, this.history.get(answer.userKey) ?? [], catalog),
    );
  }
}

/** Ids of a source, and a source that gives the same ids again. */
function notedIds(ids: IdSource): { readonly noting: IdSource; readonly again: IdSource } {
  const given: string[] = [];
  const note = (id: string) => {
    given.push(id);
    return id;
  };
  let repeated = 0;
  const repeat = () => given[repeated++] as string;
  return {
    noting: {
      next: (kind) => note(ids.next(kind)),
      nextOwned: (kind, owner) => note(ids.nextOwned(kind, owner)),
    },
    again: { next: repeat, nextOwned: repeat },
  };
}
