// A slow, obvious model of the service, written without looking at the product. It shares no code with the
// service and predicts the answer to every wire request. It covers metering, credits, merges and what a payment
// provider does to a user, without privacy, prompt logs and compose. Before each request it settles what is due,
// each at its due time; then it validates, checks the operation cap, and lets the call's own file answer from
// plain lists.

import { inTurn } from "./alerts.ts";
import { isValid, withoutNulls } from "./checks.ts";
import { compare, idsLearnt, renamed } from "./compare.ts";
import { credits, extend, grant, ledger, revoke } from "./credits.ts";
import {
  type CatalogDocument,
  type Input,
  type ModelOptions,
  type ModelReply,
  type ModelRequest,
  refusal,
  type WireData,
} from "./document.ts";
import { settle } from "./entry.ts";
import { explain } from "./explain.ts";
import { alias, aliasBatch } from "./merge.ts";
import { bodyOf, type Listener, type Recorded } from "./messages.ts";
import { canUse, reserve, track } from "./metering.ts";
import { overage, spendCap } from "./overage.ts";
import { customer, event, events, usage, users } from "./reads.ts";
import { features } from "./features.ts";
import { includesAny } from "./includes.ts";
import { createRun, endRun, getRun, listRuns } from "./runs.ts";
import { commit, release } from "./settlement.ts";
import { World } from "./state.ts";
import { mirror, paidGrant, refund, reinstate } from "./stripe.ts";
import { cancel, subscribe, unschedule } from "./subscriptions.ts";
import { setParent } from "./tree.ts";
import { tellingUnknown } from "./unknown_members.ts";

export { compare };

export class Model {
  readonly #world: World;

  constructor(catalog: CatalogDocument, options: ModelOptions = {}) {
    this.#world = new World(structuredClone(catalog), options);
  }

  /**
   * Predicts the answer to one request and remembers its effects.
   * @param now The clock of the mode, in milliseconds; never earlier than at the call before.
   * @param observed The system's answer, from which the ids it chose are learnt, and the order of rows where it
   *   is the system's own.
   * @param realNow The real clock, which decides the month of metering operations.
   */
  handle(request: ModelRequest, now: number, observed?: ModelReply, realNow = now): ModelReply {
    const predicted = this.#answer(request, now, realNow, observed);
    if (!observed) return predicted;
    const names = new Map<string, string>();
    for (const [placeholder, id] of idsLearnt(predicted, observed)) {
      if (!names.has(placeholder)) names.set(placeholder, this.#world.learn(placeholder, id));
    }
    return renamed(predicted, names);
  }

  /**
   * Another catalog is in force from now on, with other models and settings, quotas, alerts, and amounts that are
   * little. All else of plans and packs stays, which rows name.
   */
  apply({ models = [], rates, settings = {}, plans, packs = [] }: CatalogDocument): void {
    const known = this.#world.catalog;
    // Balances name their packs.
    for (const pack of known.packs ?? []) {
      delete pack.lowAt;
      Object.assign(pack, structuredClone(packs.find(({ id }) => id === pack.id)));
    }
    const ofRates = rates === undefined ? {} : { rates };
    this.#world.catalog = { ...known, ...structuredClone({ models, settings, plans, ...ofRates }) };
  }

  /** Settles what is due at a moment; a call does so only before it, and may leave something that is over already. */
  settle(now: number): void {
    settle(this.#world, now);
  }

  /** These take messages from now on. */
  listen(listeners: Listener[]): void {
    this.#world.messages.listeners = listeners;
  }

  /** Compares the messages recorded since the last call, in their order, with the expected ones; the differences in words. */
  take(recorded: Recorded[]): string[] {
    const { balances, messages, options } = this.#world;
    // Choice: messages about credits that come and go by themselves are not predicted.
    const isPredicted = ({ type, data }: Recorded) =>
      !includesAny(this.#world) || !type.startsWith("credits.") ||
      balances.find(({ id }) => id === data["balanceId"])?.origin === null;
    return messages.take(recorded.filter(isPredicted), options.mode ?? "live");
  }

  /** The expected messages to a listener about a user that were not recorded yet, in order. */
  waiting(webhookId: string, userId: string, now: number): WireData[] {
    settle(this.#world, now);
    return this.#world.messages.waiting(webhookId, userId).map(bodyOf);
  }

  /** The messages expected up to a moment that were never recorded, in words. */
  missing(now: number): string[] {
    settle(this.#world, now);
    return this.#world.messages.missing();
  }

  /** Metering operations of the UTC month that contains `at`. */
  operationsUsed(at: number): number {
    return this.#world.operationsUsed(at);
  }

  /** Cases that are worth meeting, with how often they came up. */
  get cases(): ReadonlyMap<string, number> {
    return this.#world.cases;
  }

  #answer(request: ModelRequest, now: number, realNow: number, observed?: ModelReply): ModelReply {
    settle(this.#world, now);
    const input = withoutNulls(request.input);
    if (!isValid(request.op, input, now)) return refusal("invalid_request");
    const { mode = "live", operationCap = null } = this.#world.options;
    const counts = request.op === "reserve" || request.op === "track";
    if (counts && operationCap !== null && this.#world.operationsUsed(realNow) >= operationCap) {
      return refusal(mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded");
    }
    this.#world.cause = null;
    const answer = () =>
      tellingUnknown(request.op, input, this.#dispatch(request.op, input, now, realNow, observed));
    // Each pair of a batch is a turn.
    return request.op.startsWith("alias") ? answer() : inTurn(this.#world, now, answer);
  }

  #dispatch(
    op: ModelRequest["op"],
    input: Input,
    now: number,
    realNow: number,
    observed?: ModelReply,
  ): ModelReply {
    const world = this.#world;
    switch (op) {
      case "reserve":
        return reserve(world, input, now);
      case "commit":
        return commit(world, input, now, realNow);
      case "release":
        return release(world, input, now);
      case "track":
        return track(world, input, now, realNow);
      case "canUse":
        return canUse(world, input, now);
      case "explain":
        return explain(world, input, now);
      case "usage":
        return usage(world, input, now);
      case "features":
        return features(world, input, now);
      case "users":
        return users(world, input, now, observed);
      case "subscribe":
        return subscribe(world, input, now);
      case "cancel":
        return cancel(world, input, now);
      case "unschedule":
        return unschedule(world, input, now);
      case "mirror":
        return mirror(world, input, now);
      case "grant":
        return grant(world, input, now);
      case "paidGrant":
        return paidGrant(world, input, now);
      case "refund":
        return refund(world, input, now);
      case "reinstate":
        return reinstate(world, input, now);
      case "extend":
        return extend(world, input, now);
      case "revoke":
        return revoke(world, input, now);
      case "credits":
        return credits(world, input, now);
      case "ledger":
        return ledger(world, input, observed);
      case "alias":
        return alias(world, input, now, realNow);
      case "aliasBatch":
        return aliasBatch(world, input, now, realNow);
      case "customer":
        return customer(world, input, now);
      case "events":
        return events(world, input);
      case "event":
        return event(world, input);
      case "createRun":
        return createRun(world, input, now);
      case "endRun":
        return endRun(world, input, now);
      case "getRun":
        return getRun(world, input, now);
      case "listRuns":
        return listRuns(world, input, now);
      case "spendCap":
        return spendCap(world, input, now);
      case "overage":
        return overage(world, input);
      case "parent":
        return setParent(world, input);
    }
  }
}
