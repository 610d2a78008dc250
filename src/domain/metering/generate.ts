// Generate: meter what compose generated for a user. The work is done, so it is counted like the commit of a reservation of
// 0: first what the plan has left, then credits, then past the quota.

import type { Metadata } from "../values/match.ts";
import { type Amount, ONE } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { CreditLine } from "../state/credit.ts";
import { payAlone, type Purchase, takeCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import type { UserKey } from "../values/ids.ts";
import { matchingGroups } from "../catalog/plan.ts";
import { type ActivePlan, activePlanOf } from "../plans/entitlement.ts";
import { answered, type Result } from "../state/result.ts";
import { isCounted, type MatchStatus } from "../state/event.ts";
import { finalParts } from "./final_parts.ts";
import type { Generation } from "../state/generation.ts";
import type { Amounts } from "../pricing/amounts.ts";
import { recordEvent } from "./record_event.ts";
import type { Line } from "../state/reservation.ts";
import { chargeLine, limitsOf } from "./settle_lines.ts";
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
  /** Texts for the event's log. */
  readonly prompt: string | null;
  readonly response: string | null;
  /** The number of the user with whose data the prompt was filled. */
  readonly askedOf: UserKey;
}

export interface GenerateAnswer {
  readonly generationId: string;
  readonly eventId: string;
  readonly matchStatus: MatchStatus;
}

/** Decides a generation: always records it, and counts it if a group covers it or credits pay for it. */
export function generate(draft: Draft, input: GenerateInput, context: Context): Result<GenerateAnswer> {
  const { event, metadata, costCents } = input;
  const tokens = input.inputTokens + input.outputTokens;
  const amounts: Amounts = { count: ONE, tokens, cents: costCents, seconds: 0n };
  const charge = chargeOf(draft, context, { event, metadata, now: context.now }, amounts);
  const eventId = context.ids.next("event");
  for (const line of charge.lines) chargeLine(draft, line, line.taken, costCents);
  takeCredits(draft, context, charge.credits, {
    reason: "event_committed",
    eventId,
    reservationId: null,
    at: context.now,
  });
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
      matchStatus: charge.matchStatus,
      createdAt: context.now,
      metadata: metadata.text,
      reservationId: null,
      reason: null,
      errorCode: null,
      lines: charge.lines,
      credits: charge.credits,
      uncovered: {},
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
  if (isCounted(charge.matchStatus)) draft.operations += 1;
  return answered({ generationId: id, eventId, matchStatus: charge.matchStatus });
}

/** Whether the prompt was about this user; false if that user was erased while the model worked. */
function isSameUser(draft: Draft, askedOf: UserKey): boolean {
  return draft.user.key === askedOf || draft.state.aliases.some(({ key }) => key === askedOf);
}

/** The parts of the plan and of balances in a generation. */
interface Charge {
  readonly matchStatus: MatchStatus;
  readonly lines: readonly Line[];
  readonly credits: readonly CreditLine[];
}

function chargeOf(draft: Draft, context: Context, purchase: Purchase, amounts: Amounts): Charge {
  const active = activePlanOf(draft, context);
  const reserved = active === null ? [] : emptyLines(active, purchase);
  if (reserved.length === 0) {
    const credits = payAlone(draft, purchase, amounts);
    if (credits !== null) return { matchStatus: "matched_credits_only", lines: [], credits };
    return { matchStatus: active === null ? "no_subscription" : "unmatched", lines: [], credits: [] };
  }
  const { lines, credits } = finalParts(draft, {
    row: { lines: reserved, credits: [], amounts: NOTHING },
    isRecharge: false,
    limits: limitsOf(draft, context, reserved),
    purchase,
    finalOf: (unit) => amounts[unit],
  });
  return { matchStatus: "matched", lines, credits };
}

const NOTHING: Amounts = { count: 0n, tokens: 0n, cents: 0n, seconds: 0n };

/** Makes the lines of a reservation of 0, one for each group that covers the event. */
function emptyLines({ plan, window }: ActivePlan, { event, metadata }: Purchase): Line[] {
  return matchingGroups(plan, event, metadata).map(({ id, unit }) => ({
    planId: plan.id,
    groupId: id,
    window,
    unit,
    taken: 0n,
  }));
}
