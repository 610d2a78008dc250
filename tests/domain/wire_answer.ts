// Answers of the domain as the wire has them, where the routes keep their way of showing them to themselves.

import { STATUS } from "../../routes/http/errors.ts";
import type { Run } from "../../src/domain/state/run.ts";
import { showRun } from "../../routes/calls/runs.ts";
import { showExplain } from "../../routes/calls/shown_explanation.ts";
import { timeText, timeTextOrNull } from "../../routes/contract/fields.ts";
import {
  endOf,
  showAmounts,
  showBalance,
  showCounter,
  showOverage,
  showQuotas,
  showRuns,
  showScheduled,
  showSharedCounter,
  showSubscription,
  showUsage,
} from "../../routes/calls/shown_records.ts";
import { numberOf } from "../../src/domain/values/amount.ts";
import type { Commands } from "../../src/domain/command.ts";
import type { LedgerEntry } from "../../src/domain/state/credit.ts";
import { chargedAmounts, matchedGroupIds, type MeteringEvent } from "../../src/domain/state/event.ts";
import { isGuard } from "../../src/domain/catalog/plan.ts";
import type { Retry } from "../../src/domain/metering/guards.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { GroupReading } from "../../src/domain/metering/availability.ts";
import type { LevelReading, OfferedGroup } from "../../src/domain/metering/reserve.ts";
import type { ChargedGroup } from "../../src/domain/metering/settle_charge.ts";
import type { CreditCost } from "../../src/domain/pricing/credits.ts";
import type { Cost } from "../../src/domain/pricing/cost.ts";
import { shownCount } from "../../src/domain/state/counter.ts";
import type { SubscriptionEvent } from "../../src/domain/state/subscription.ts";
import type { Result } from "../../src/domain/state/result.ts";
import type { UserAnswer } from "../../src/domain/usage.ts";
import type { ModelReply, WireData } from "../model/document.ts";

function showCost({ cost, warnings }: { cost: Cost; warnings: readonly string[] }): WireData {
  return { cost: { ...cost, cents: numberOf(cost.cents) }, warnings };
}

/** What a call costs in credits; nothing for a catalog without rates. */
function showCredits({ credits }: { readonly credits: CreditCost | null }): WireData {
  return credits === null ? {} : { credits: { ...credits, total: numberOf(credits.total) } };
}

function showGroup({ group, quota, counter, gate, overageMax }: GroupReading): WireData {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(shownCount(counter)),
    ...showOverage(counter, overageMax),
    ...(gate === null ? {} : { headroomGate: numberOf(gate) }),
  };
}

/** An event as lists have it; no texts are logged here. */
export function showListed(event: MeteringEvent, endUserId: string | undefined): WireData {
  return {
    id: event.id,
    endUserId,
    eventType: event.type,
    quantity: numberOf(event.quantity),
    costCents: numberOf(event.costCents),
    ...(event.costCredits === undefined ? {} : { costCredits: numberOf(event.costCredits) }),
    matchStatus: event.matchStatus,
    createdAt: new Date(event.createdAt).toISOString(),
    hasLog: false,
    promptPreview: null,
    ...(event.runId === undefined ? {} : { runId: event.runId }),
  };
}

/** An event with its details. */
export function showEvent(
  event: MeteringEvent,
  nameOf: (key: number) => string | undefined,
  isLogged: boolean,
): WireData {
  const levels = event.levels ?? [];
  const lines = [event, ...levels].flatMap((level) => level.lines);
  const above = levels.flatMap((level) =>
    chargedAmounts(level).map((each) => ({ ...each, userId: nameOf(level.userKey) }))
  );
  return {
    ...showListed(event, nameOf(event.userKey)),
    metadata: event.metadata === null ? null : JSON.parse(event.metadata),
    matchedGroupIds: matchedGroupIds({ ...event, lines }),
    amounts: [...chargedAmounts(event), ...above].map((each) => ({ ...each, amount: numberOf(each.amount) })),
    prompt: null,
    response: null,
    errorCode: isLogged ? event.errorCode : null,
    reservationId: event.reservationId,
    reason: event.reason,
    uncovered: Object.fromEntries(
      Object.entries(event.uncovered).map(([unit, amount]) => [unit, numberOf(amount)]),
    ),
  };
}

/** A row of the ledger. */
export function showEntry({ userKey: _, delta, at, ...row }: LedgerEntry): WireData {
  return { ...row, delta: numberOf(delta), occurredAt: timeText(at) };
}

/** A user with its latest history, newest first. */
export function showUser(
  answer: UserAnswer,
  history: readonly SubscriptionEvent[],
  catalog: Catalog,
): WireData {
  // What falls due may be of an earlier time than what was written before it.
  const rows = history.toSorted((a, b) => a.at - b.at).toReversed().slice(0, 50);
  const { parentId, path } = answer;
  const memberLimits = showQuotas(answer.memberLimits);
  return {
    ...showUsage(answer, true),
    ...parentId === null ? {} : { parentId, path },
    ...memberLimits === null ? {} : { memberLimits },
    aliases: answer.aliases.map(({ id }) => id),
    subscription: answer.subscription && showSubscription(answer.userId, answer.subscription, catalog),
    ...answer.addOns && {
      addOns: answer.addOns.map((row) => showSubscription(answer.userId, row, catalog)),
    },
    history: rows.map(({ userKey: _, at, ...row }) => ({ ...row, at: timeText(at) })),
  };
}

type Show<Name extends keyof Commands> = (answer: Commands[Name]["answer"], catalog: Catalog) => WireData;

/** Balances of a grant; the first one is shown twice. */
const showGranted: Show<"grant"> = (answer) => {
  const balances = answer.balances.map(({ row }) => ({
    balanceId: row.id,
    packItemId: row.packItemId,
    remaining: numberOf(row.remaining),
    expiresAt: timeTextOrNull(row.expiresAt),
  }));
  const [{ balanceId, remaining, expiresAt } = { balanceId: "", remaining: 0, expiresAt: null }] = balances;
  return { balances, balanceId, remaining, expiresAt };
};

function showReserved({ groups, blocking }: Pick<LevelReading, "groups" | "blocking">): WireData[] {
  return groups.map((group) => ({
    ...showGroup(group),
    ...blocking.includes(group) ? { label: group.group.label, resetsAt: endOf(group.window) } : {},
  }));
}

function showOffered({ group, quota, counter, window, offers, overageMax }: OfferedGroup): WireData {
  return {
    groupId: group.id,
    current: numberOf(shownCount(counter)),
    quota: numberOf(quota),
    ...showOverage(counter, overageMax),
    resetsAt: endOf(window),
    creditAvailable: numberOf(offers.reduce((sum, { available }) => sum + available, 0n)),
    creditPacks: offers.map((offer) => ({ ...offer, available: numberOf(offer.available) })),
  };
}

function showCharged({ overage, ...group }: ChargedGroup): WireData {
  const shown = { ...group, quota: numberOf(group.quota), current: numberOf(group.current) };
  return overage === undefined ? shown : { ...shown, overage: numberOf(overage) };
}

/** The users above, and who refuses; nothing for a user without a parent. */
function showPath<Level extends { readonly userId: string }>(
  { reasons, refusedBy, levels, runs }: {
    readonly reasons: readonly string[];
    readonly runs: readonly Run[];
    readonly refusedBy: readonly string[];
    readonly levels: readonly Level[] | null;
  },
  show: (level: Level) => WireData,
): WireData {
  if (levels === null && runs.length === 0) return {};
  return {
    ...reasons.length > 0 ? { refusedBy } : {},
    ...levels && { levels: levels.map((level) => ({ userId: level.userId, ...show(level) })) },
    ...showRuns(runs),
  };
}

/** When a call that guards alone refuse may be tried again. */
function showRetry({ retryAfterMs }: Retry): WireData {
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** The answers of commands in the wire's shape, by the command's name. */
export const SHOW = {
  reserve: ({ allowed, matched, hold, reasons, groups, blocking, warnings, credits, ...path }) => ({
    ...showCredits({ credits }),
    allowed,
    warnings,
    matched,
    ...(hold && { reservationId: hold.reservationId, expiresAt: timeText(hold.expiresAt) }),
    reasons,
    groups: showReserved({ groups, blocking }),
    ...showPath({ reasons, ...path }, (level) => ({ groups: showReserved(level) })),
    ...showRetry(path),
  }),
  canUse: ({ allowed, matched, reasons, groups, warnings, credits, ...path }) => ({
    ...showCredits({ credits }),
    allowed,
    warnings,
    matched,
    reasons,
    details: groups.map(showOffered),
    ...showPath({ reasons, ...path }, (level) => ({ details: level.groups.map(showOffered) })),
    ...showRetry(path),
  }),
  explain: (answer) => ({ ...showExplain(answer), ...showRetry(answer) }),
  track: (answer) => ({
    eventId: answer.eventId,
    matchStatus: answer.matchStatus,
    matchedGroupIds: answer.matchStatus === "matched"
      ? [
        ...new Set(
          [answer, ...answer.levels ?? []].flatMap(({ counters }) =>
            counters.flatMap(({ group }) => isGuard(group) ? [] : [group.id])
          ),
        ),
      ]
      : [],
    counters: answer.counters.map(showCounter),
    ...showRuns(answer.runs),
    ...answer.levels && {
      levels: answer.levels.map(({ userId, counters }) => ({
        userId,
        counters: counters.map(showSharedCounter),
      })),
    },
    ...showCost(answer),
    ...showCredits(answer),
  }),
  commit: ({ eventId, groups, recharged, levels, ...priced }) => ({
    ...showCost(priced),
    ...showCredits(priced),
    eventId,
    groups: groups.map(showCharged),
    ...levels && {
      levels: levels.map(({ userId, groups, uncovered }) => ({
        userId,
        groups: groups.map(showCharged),
        uncovered: showAmounts(uncovered),
      })),
    },
    recharged,
  }),
  release: () => ({}),
  setParent: (answer) => ({
    ...answer,
    memberLimits: answer.memberLimits && Object.fromEntries(
      Object.entries(answer.memberLimits).map(([id, quota]) => [id, { quota: numberOf(quota) }]),
    ),
  }),
  subscribe: ({ userId, row }, catalog) => showSubscription(userId, row, catalog),
  schedule: ({ userId, row }, catalog) => showScheduled(userId, row, catalog),
  cancel: (answer) => {
    const { userId, row: { id, planId, endsAt } } = answer;
    return { subscriptionId: id, userId, planId, endsAt: timeTextOrNull(endsAt) };
  },
  mirror: ({ userId, row }, catalog) => ({ userId, row: row && showSubscription(userId, row, catalog) }),
  grant: showGranted,
  refund: ({ balanceIds }) => ({ balanceIds }),
  reinstate: ({ balanceIds }) => ({ balanceIds }),
  extend: ({ row }) => ({
    balanceId: row.id,
    remaining: numberOf(row.remaining),
    expiresAt: timeTextOrNull(row.expiresAt),
  }),
  credits: ({ balances, now }) => ({ credits: balances.map((balance) => showBalance(balance, now)) }),
  usage: (answer) => showUsage(answer, true),
  features: ({ userId, features }) => ({ userId, features }),
  spendCap: (answer) => ({ ...answer, max: answer.max === null ? null : numberOf(answer.max) }),
  openRun: showRun,
  endRun: showRun,
} satisfies { readonly [Name in keyof Commands]?: Show<Name> };

/** A result as the wire answers it. */
export function replyOf<Answer>(
  result: Result<Answer>,
  show: (answer: Answer, catalog: Catalog) => WireData,
  catalog: Catalog,
): ModelReply {
  if (result.ok) return { status: 200, data: JSON.parse(JSON.stringify(show(result.answer, catalog))) };
  const { code, details } = result.refusal;
  return { status: STATUS[code], code, ...(details === undefined ? {} : { details: details as WireData }) };
}
