// Reserve, commit, release, track, can-use and explain: JSON becomes a command to the user, its result becomes JSON.

import type { Call } from "../../actors/call.ts";
import { numberOf } from "../../src/domain/values/amount.ts";
import type { CommitAnswer, Correction } from "../../src/domain/metering/commit.ts";
import { shownCount } from "../../src/domain/state/counter.ts";
import type { Cost } from "../../src/domain/pricing/cost.ts";
import type { CreditCost } from "../../src/domain/pricing/credits.ts";
import type { CallSize } from "../../src/domain/pricing/amounts.ts";
import type { CanUseAnswer, OfferedGroup, ReserveAnswer } from "../../src/domain/metering/reserve.ts";
import type { ExplainAnswer } from "../../src/domain/metering/explanation.ts";
import type { GroupReading } from "../../src/domain/metering/availability.ts";
import type { TrackAnswer } from "../../src/domain/metering/track.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Handled } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint, EndpointRequest } from "../http/endpoint_types.ts";
import type { CheckedOf, DataOf } from "../contract/definition.ts";
import { canUse, commit, explain, release, reserve, track } from "../contract/metering.ts";
import { runNeeded } from "./runs.ts";
import { showExplain } from "./shown_explanation.ts";
import { amountOrNull, timeText } from "../contract/fields.ts";
import { fitOf } from "../contract/fit.ts";
import { runTurn, type Target, type TurnWorld } from "../http/turn.ts";
import { joined, warningsAbout } from "../http/unknown_members.ts";
import type { ChargedGroup } from "../../src/domain/metering/settle_charge.ts";
import { isGuard, UNITS } from "../../src/domain/catalog/plan.ts";
import type { Retry } from "../../src/domain/metering/guards.ts";
import {
  endOf,
  showAmounts,
  showCounter,
  showOverage,
  showRuns,
  showSharedCounter,
} from "./shown_records.ts";

const endpoint = endpointsOn<TurnWorld>();

/** What a metering call asks: whose turn it is, its command, and how the data of the answer is made. */
export interface Asked<Name extends CommandName, Data>
  extends Pick<Call<Name>, "name" | "input" | "isCapped" | "needs"> {
  readonly of: Target;
  readonly show: (answer: Commands[Name]["answer"]) => Data;
}

function ask<Name extends CommandName, Data>(
  request: EndpointRequest<TurnWorld, unknown>,
  asked: Asked<Name, Data>,
): Promise<Handled<Data>> {
  return runTurn<Name, Data>(request, asked.of, asked, asked.show);
}

export const METERING: readonly Endpoint<TurnWorld>[] = [
  endpoint(reserve, (request) => ask(request, askReserve(request.input))),
  endpoint(commit, (request) => ask(request, askCommit(request.input))),
  endpoint(release, (request) => ask(request, askRelease(request.input))),
  endpoint(track, (request) => ask(request, askTrack(request.input))),
  endpoint(canUse, (request) => ask(request, askCanUse(request.input))),
  endpoint(explain, (request) => {
    const { input } = request;
    const show = (answer: ExplainAnswer) => ({
      ...showExplain(answer),
      warnings: joined(warningsAbout(input)),
      ...showRetry(answer),
    });
    return runTurn(request, { userId: input.userId }, { name: "explain", ...checkOf(input) }, show);
  }),
];

/** What a reserve asks. */
export function askReserve(
  input: CheckedOf<typeof reserve>,
): Asked<"reserve", DataOf<typeof reserve>> {
  const { userId, event } = input;
  const ttlMs = input.ttlSeconds == null ? null : Math.round(input.ttlSeconds * 1000);
  const command = {
    event,
    metadata: input.metadata ?? null,
    size: sizeOf(input),
    ttlMs,
    prompt: input.prompt ?? null,
    runId: input.runId ?? null,
    fit: input.fit == null ? null : fitOf(input.fit),
  };
  const show = (answer: ReserveAnswer) => showReserve(answer, warningsAbout(input));
  const needs = runNeeded(input.runId);
  return { of: { userId }, name: "reserve", input: command, isCapped: true, needs, show };
}

/** What a commit asks. */
export function askCommit(input: CheckedOf<typeof commit>): Asked<"commit", DataOf<typeof commit>> {
  const { reservationId, extra, actual, costCents, usage, providerUsage, response } = input;
  const command = {
    reservationId,
    costCents: amountOrNull(costCents),
    extra: correctionOf({
      count: extra?.count,
      tokens: extra?.tokens ?? extra?.outputTokens,
      cents: extra?.cents ?? extra?.outputCostCents,
      seconds: extra?.seconds,
      credits: extra?.credits,
    }),
    actual: correctionOf(actual ?? {}),
    usage: usage ?? providerUsage ?? null,
    response: response ?? null,
  };
  const show = (answer: CommitAnswer) => showCommit(answer, warningsAbout(input));
  const of = { reservationId };
  return { of, name: "commit", input: command, needs: of, show };
}

/** What a release asks. */
export function askRelease(input: CheckedOf<typeof release>): Asked<"release", DataOf<typeof release>> {
  const { reservationId, reason, errorCode, response } = input;
  const command = {
    reservationId,
    reason: reason ?? null,
    errorCode: errorCode ?? null,
    response: response ?? null,
  };
  const show = () => ({ warnings: joined(warningsAbout(input)) });
  const of = { reservationId };
  return { of, name: "release", input: command, needs: of, show };
}

/** What a can-use asks. */
export function askCanUse(input: CheckedOf<typeof canUse>): Asked<"canUse", DataOf<typeof canUse>> {
  const show = (answer: CanUseAnswer) => showCanUse(answer, warningsAbout(input));
  return { of: { userId: input.userId }, name: "canUse", ...checkOf(input), show };
}

/** What can-use and explain ask. */
function checkOf(input: CheckedOf<typeof canUse>): Pick<Call<"canUse">, "input" | "needs"> {
  const { event, metadata = null, runId = null } = input;
  return { input: { event, metadata, size: sizeOf(input), runId }, needs: runNeeded(runId) };
}

/** What a track asks. */
export function askTrack(input: CheckedOf<typeof track>): Asked<"track", DataOf<typeof track>> {
  const command = {
    event: input.event,
    metadata: input.metadata ?? null,
    size: sizeOf(input),
    costCents: amountOrNull(input.costCents),
    usage: input.usage ?? input.providerUsage ?? null,
    prompt: input.prompt ?? null,
    response: input.response ?? null,
    runId: input.runId ?? null,
  };
  const show = (answer: TrackAnswer) => showTrack(answer, warningsAbout(input));
  const { userId } = input;
  return {
    of: { userId },
    name: "track",
    input: command,
    isCapped: true,
    needs: runNeeded(input.runId),
    show,
  };
}

type WireSize = Readonly<Partial<Record<keyof CallSize, number | null | undefined>>>;

function sizeOf(input: WireSize): CallSize {
  return {
    quantity: amountOrNull(input.quantity),
    count: amountOrNull(input.count),
    inputTokens: amountOrNull(input.inputTokens),
    inputCostCents: amountOrNull(input.inputCostCents),
    maxOutputTokens: amountOrNull(input.maxOutputTokens),
    cacheWriteTokens: amountOrNull(input.cacheWriteTokens),
    cacheWrite1hTokens: amountOrNull(input.cacheWrite1hTokens),
  };
}

function correctionOf(members: Readonly<Partial<Record<keyof Correction, number | null | undefined>>>) {
  const correction: { -readonly [Unit in keyof Correction]: Correction[Unit] } = {};
  for (const unit of UNITS) {
    const amount = amountOrNull(members[unit]);
    if (amount !== null) correction[unit] = amount;
  }
  return correction;
}

function showReserve(answer: ReserveAnswer, memberWarnings: readonly string[]): DataOf<typeof reserve> {
  const { allowed, matched, reasons, groups, blocking, levels, hold, warnings } = answer;
  return {
    allowed,
    matched,
    reservationId: hold?.reservationId,
    expiresAt: hold === null ? undefined : timeText(hold.expiresAt),
    reasons: reasons.length === 0 ? undefined : reasons,
    groups: groups.length === 0
      ? undefined
      : groups.map((group) => showGroup(group, blocking.includes(group))),
    ...showLevels(answer, levels, ({ groups: ofLevel, blocking: full }) => ({
      groups: ofLevel.map((group) => showGroup(group, full.includes(group))),
    })),
    ...showCredits(answer),
    ...showFitted(answer),
    warnings: joined(warnings, memberWarnings),
    ...showRetry(answer),
  };
}

function showFitted({ fitted }: ReserveAnswer) {
  if (fitted === undefined) return {};
  return { fitted: { model: fitted.model, maxOutputTokens: numberOf(fitted.maxOutputTokens) } };
}

/** When a call that guards alone refused may be tried again. */
function showRetry({ retryAfterMs }: Retry): Retry {
  return retryAfterMs === undefined ? NO_RETRY : { retryAfterMs };
}

const NO_RETRY: Retry = {};

function showGroup({ group, quota, counter, gate, window, overageMax }: GroupReading, isBlocking: boolean) {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(shownCount(counter)),
    headroomGate: gate === null ? undefined : numberOf(gate),
    ...showOverage(counter, overageMax),
    ...isBlocking ? { label: group.label, resetsAt: endOf(window) } : undefined,
  };
}

/** The users above with the members that `show` gives, the runs, and who refuses; nothing without a parent and a run. */
function showLevels<Level extends { readonly userId: string }, Shown>(
  { reasons, refusedBy, runs }: Pick<ReserveAnswer, "reasons" | "refusedBy" | "runs">,
  levels: readonly Level[] | null,
  show: (level: Level) => Shown,
) {
  if (levels === null && runs.length === 0) return {};
  return {
    ...reasons.length > 0 ? { refusedBy } : {},
    ...levels === null ? {} : { levels: levels.map((level) => ({ userId: level.userId, ...show(level) })) },
    ...showRuns(runs),
  };
}

function showCommit(
  { eventId, recharged, groups, levels, cost, credits, warnings }: CommitAnswer,
  memberWarnings: readonly string[],
): DataOf<typeof commit> {
  return {
    eventId,
    groups: groups.map(showCharged),
    ...levels === null ? {} : {
      levels: levels.map(({ userId, groups: ofLevel, uncovered }) => ({
        userId,
        groups: ofLevel.map(showCharged),
        uncovered: showAmounts(uncovered),
      })),
    },
    recharged,
    cost: showCost(cost),
    ...showCredits({ credits }),
    warnings: joined(warnings, memberWarnings),
  };
}

function showCharged({ overage, ...group }: ChargedGroup) {
  const shown = { ...group, quota: numberOf(group.quota), current: numberOf(group.current) };
  return overage === undefined ? shown : { ...shown, overage: numberOf(overage) };
}

function showCost({ cents, priced, model }: Cost) {
  return { cents: numberOf(cents), priced, model };
}

/** What a call costs in credits; nothing for a catalog without rates. */
function showCredits({ credits }: { readonly credits: CreditCost | null }) {
  return credits === null ? NO_CREDITS : { credits: { ...credits, total: numberOf(credits.total) } };
}

const NO_CREDITS = {};

function showTrack(answer: TrackAnswer, memberWarnings: readonly string[]): DataOf<typeof track> {
  const { eventId, matchStatus, counters, levels, runs, cost, warnings } = answer;
  const above = levels?.map((level) => ({
    userId: level.userId,
    counters: level.counters.map(showSharedCounter),
  }));
  const groupIds = [answer, ...levels ?? []].flatMap((level) =>
    level.counters.filter(({ group }) => !isGuard(group)).map(({ group }) => group.id)
  );
  return {
    eventId,
    matchStatus,
    matchedGroupIds: matchStatus === "matched" ? [...new Set(groupIds)] : [],
    counters: counters.map(showCounter),
    ...above === undefined ? {} : { levels: above },
    ...showRuns(runs),
    cost: showCost(cost),
    ...showCredits(answer),
    warnings: joined(warnings, memberWarnings),
  };
}

function showCanUse(answer: CanUseAnswer, memberWarnings: readonly string[]): DataOf<typeof canUse> {
  const { allowed, matched, reasons, groups, levels, warnings } = answer;
  return {
    allowed,
    matched,
    reasons,
    details: groups.map(showOffered),
    ...showLevels(answer, levels, ({ groups: ofLevel }) => ({ details: ofLevel.map(showOffered) })),
    ...showCredits(answer),
    warnings: joined(warnings, memberWarnings),
    ...showRetry(answer),
  };
}

function showOffered({ group, quota, counter, window, offers, overageMax }: OfferedGroup) {
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
