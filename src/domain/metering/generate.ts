// Generate: meter what compose generated for a user. The work is done, so it is counted like the commit of a reservation of
// 0: first what the plan has left, then credits, then past the quota. Rates count it, concurrency limits do not, and it
// begins no session: between two sessions a group has its whole quota, and counts nothing.

import { knownRuns, moveRuns, runOfCall } from "../accounts/run.ts";
import type { Metadata } from "../values/match.ts";
import { type Amount, ONE } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import { payAlone, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import type { UserKey } from "../values/ids.ts";
import { matchingGroups } from "../catalog/plan.ts";
import { activePlanOf } from "../plans/entitlement.ts";
import { windowFor } from "../plans/windows.ts";
import { isOfGuard } from "../values/period.ts";
import { answered, type Result } from "../state/result.ts";
import { type Charge, isCounted, type MatchStatus } from "../state/event.ts";
import { finalParts } from "./final_parts.ts";
import type { Generation } from "../state/generation.ts";
import type { Amounts } from "../pricing/amounts.ts";
import { creditsOf, eventCredits, rateOf } from "../pricing/credits.ts";
import type { Usage } from "../pricing/usage.ts";
import { recordEvent } from "./record_event.ts";
import { eventStep, type Run } from "../state/run.ts";
import type { Line } from "../state/reservation.ts";
import { sharesOf, takeShares } from "../accounts/shares.ts";
import { levelCharges } from "./levels.ts";
import { chargeEvent } from "./settle_charge.ts";
import { limitsOf } from "./settle_lines.ts";
import { cutText } from "../values/texts.ts";

/** One generation, by the model's report and the catalog's prices. */
export interface GenerateInput {
  /** The compose type's name. */
  readonly type: string;
  /** The catalog's id of the model. */
  readonly model: string;
  /** The event to meter it as. */
  readonly event: string;
  readonly metadata: Metadata;
  readonly inputTokens: Amount;
  readonly outputTokens: Amount;
  readonly costCents: Amount;
  /** The model's report, by which credits are computed. */
  readonly usage: Usage;
  /** Texts for the event's log. */
  readonly prompt: string | null;
  readonly response: string | null;
  /** The number of the user with whose data the prompt was filled. */
  readonly askedOf: UserKey;
  /** The run in which it counts, also if that has ended while the model worked; absent or null for none. */
  readonly runId?: string | null;
}

export interface GenerateAnswer {
  readonly generationId: string;
  readonly eventId: string;
  readonly matchStatus: MatchStatus;
  /** The run and those around it after the generation, innermost first; empty without one. */
  readonly runs: readonly Run[];
}

/** Decides a generation: always records it, and counts it if a group covers it or credits pay for it. */
export function generate(draft: Draft, input: GenerateInput, context: Context): Result<GenerateAnswer> {
  const { event, metadata, costCents } = input;
  const tokens = input.inputTokens + input.outputTokens;
  const rate = rateOf(context.catalog, event, metadata);
  const credits = creditsOf(rate, input.usage, costCents);
  const amounts: Amounts = { count: ONE, tokens, cents: costCents, seconds: 0n, credits };
  const purchase = { event, metadata, now: context.now };
  const reserved = [draft, ...draft.above].map((level) => emptyLines(level, context, purchase));
  const isCovered = reserved.some((lines) => lines.some(({ window }) => !isOfGuard(window)));
  const alone = isCovered ? null : payAlone(draft, purchase, amounts);
  const matchStatus = isCovered
    ? "matched"
    : alone !== null
    ? "matched_credits_only"
    : statusWithout(draft, context);
  const chargeAt = (level: Draft, lines: readonly Line[]): Charge =>
    isCounted(matchStatus) ? chargeOf(level, context, purchase, lines, amounts) : NO_CHARGE;
  const above = draft.above.flatMap((level, place) => {
    const lines = reserved[place + 1] ?? [];
    return lines.length === 0 || !isCounted(matchStatus) ? [] : [{ level, charge: chargeAt(level, lines) }];
  });
  const own = chargeAt(draft, reserved[0] ?? []);
  const charge = alone === null ? own : { ...own, credits: alone };
  const eventId = context.ids.next("event");
  chargeEvent(draft, context, charge, { eventId, costCents });
  for (const { level, charge: taken } of above) chargeEvent(level, context, taken, { eventId, costCents });
  const runId = knownRuns(draft, input.runId ?? undefined)[0]?.id;
  const countsInRun = runId !== undefined && isCounted(matchStatus);
  if (countsInRun) moveRuns(draft, runId, eventStep(event, amounts));
  const shares = sharesOf(
    above.map(({ level: account, charge: { lines } }) => ({ account, lines })),
    amounts,
  );
  takeShares(draft, shares.shares, costCents);
  const { key: userKey, realm } = draft.user;
  recordEvent(
    draft,
    {
      id: eventId,
      userKey,
      realm,
      type: event,
      quantity: ONE,
      costCents,
      ...eventCredits(credits, rate !== null),
      model: input.model,
      matchStatus,
      createdAt: context.now,
      metadata: metadata.text,
      reservationId: null,
      reason: null,
      errorCode: null,
      work: {
        size: { quantity: 0n, count: ONE, inputTokens: tokens, inputCostCents: costCents },
        costCents: null,
        usage: null,
        credits,
        heldForMs: 0,
        held: NOTHING,
      },
      ...charge,
      ...levelCharges(above.map(({ level, charge: taken }) => ({ userKey: level.user.key, ...taken }))),
      ...countsInRun ? { runId, runAmounts: amounts } : runOfCall(runId),
      ...shares,
    },
    // Prompt and output are kept under the rules of prompt logs.
    isSameUser(draft, input.askedOf)
      ? { prompt: cutText(input.prompt), response: cutText(input.response) }
      : { prompt: null, response: null },
    context,
  );
  const { type, model, inputTokens, outputTokens } = input;
  const id = context.ids.next("generation");
  const usage = { type, model, inputTokens, outputTokens, costCents };
  const row: Generation = { id, userKey, realm, ...usage, eventId, at: context.now };
  draft.appendRecord({ verb: "append", table: "generations", row });
  if (isCounted(matchStatus)) draft.operations += 1;
  return answered({ generationId: id, eventId, matchStatus, runs: knownRuns(draft, runId) });
}

/** Whether the prompt was about this user; false if that user was erased while the model worked. */
function isSameUser(draft: Draft, askedOf: UserKey): boolean {
  return draft.user.key === askedOf || draft.state.aliases.some(({ key }) => key === askedOf);
}

const NO_CHARGE: Charge = { lines: [], credits: [], uncovered: {} };

/** What one user's plan takes of a generation, and its balances behind the plan. */
function chargeOf(
  draft: Draft,
  context: Context,
  purchase: Purchase,
  reserved: readonly Line[],
  amounts: Amounts,
): Charge {
  if (reserved.length === 0) return NO_CHARGE;
  const { lines, credits } = finalParts(draft, {
    row: { lines: reserved, credits: [], amounts: NOTHING },
    isRecharge: false,
    limits: limitsOf(draft, context, reserved),
    purchase,
    finalOf: (unit) => amounts[unit],
  });
  return { ...NO_CHARGE, lines: lines.filter(({ window }) => window.isNext !== true), credits };
}

/** The status of a generation that neither a plan nor credits cover. */
function statusWithout(draft: Draft, context: Context): MatchStatus {
  return activePlanOf(draft, context) === null ? "no_subscription" : "unmatched";
}

const NOTHING: Amounts = { count: 0n, tokens: 0n, cents: 0n, seconds: 0n, credits: 0n };

/** Makes the lines of a reservation of 0 that is over: one for each group that covers the event and counts it. */
function emptyLines(draft: Draft, context: Context, { event, metadata }: Purchase): Line[] {
  const active = activePlanOf(draft, context);
  if (active === null) return [];
  const { plan } = active;
  return matchingGroups(plan, event, metadata).flatMap((group) => {
    const window = windowFor(draft, active, group, context.now);
    return window.kind === "concurrency"
      ? []
      : [{ planId: plan.id, groupId: group.id, window, unit: group.unit, taken: 0n }];
  });
}
