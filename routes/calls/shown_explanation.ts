// An explanation as JSON.

import { numberOf } from "../../src/domain/values/amount.ts";
import type {
  ExplainAnswer,
  ExplainedBalance,
  ExplainedGroup,
  ExplainedRate,
  Meeting,
  QuotaParts,
} from "../../src/domain/metering/explanation.ts";
import { shownCount } from "../../src/domain/state/counter.ts";
import type { Headroom } from "../../src/domain/catalog/plan.ts";
import type { DataOf } from "../contract/definition.ts";
import type { explain } from "../contract/metering.ts";
import { timeTextOrNull } from "../contract/fields.ts";
import { showOverage, showRuns } from "./shown_records.ts";

type Explained = DataOf<typeof explain>;

/** The data of the answer to `POST /v1/explain`. */
export function showExplain(answer: ExplainAnswer): Explained {
  const { allowed, matched, reasons, refusedBy, text, subscription, levels, runs, rate, ...seen } = answer;
  return {
    allowed,
    matched,
    reasons,
    text,
    subscription: subscription === null ? null : {
      subscriptionId: subscription.row.id,
      planId: subscription.row.planId,
      planName: subscription.planName,
    },
    groups: seen.groups.map(showGroup),
    credits: seen.credits.map(showBalance),
    ...levels === null && runs.length === 0 || reasons.length === 0 ? {} : { refusedBy },
    ...levels === null ? {} : {
      levels: levels.map(({ userId, groups, credits }) => ({
        userId,
        groups: groups.map(showGroup),
        credits: credits.map(showBalance),
      })),
    },
    ...showRuns(runs),
    ...rate === null ? {} : { rate: showRate(rate) },
  };
}

function showRate({ total, rated, row, parts }: ExplainedRate): NonNullable<Explained["rate"]> {
  return {
    total: numberOf(total),
    rated,
    event: row?.document.event ?? null,
    minimum: numberOf(row?.minimum ?? 0n),
    parts: parts.map(({ part, amount, rate, credits }) => ({
      part,
      amount: numberOf(amount),
      rate: numberOf(rate),
      credits: numberOf(credits),
    })),
  };
}

function showGroup(
  { group, quota, counter, gate, isCustom, parts, held, meeting, fit, overageMax }: ExplainedGroup,
): Explained["groups"][number] {
  return {
    groupId: group.id,
    label: group.label,
    unit: group.unit,
    covers: fit !== null,
    ...showMeeting(meeting),
    quota: numberOf(quota),
    isCustom,
    ...parts === null ? {} : { quotaParts: showParts(parts) },
    headroom: showHeadroom(group.headroom),
    gate: numberOf(gate ?? quota),
    current: numberOf(shownCount(counter)),
    ...showOverage(counter, overageMax),
    held: numberOf(held),
    need: fit === null ? null : numberOf(fit.need),
    room: fit === null ? null : numberOf(fit.room),
    fits: fit === null ? null : fit.fits,
  };
}

function showParts({ own, quantity, addOns }: QuotaParts) {
  return {
    own: numberOf(own),
    quantity,
    addOns: addOns.map(({ row, quota }) => {
      return { subscriptionId: row.id, planId: row.planId, quantity: row.quantity, quota: numberOf(quota) };
    }),
  };
}

function showMeeting(meeting: Meeting) {
  const { why } = meeting;
  return why === "metadata" ? { why, metadata: Object.fromEntries(meeting.metadata) } : { why };
}

function showHeadroom(headroom: Headroom | null) {
  return headroom === null ? null : { mode: headroom.mode, value: numberOf(headroom.value) };
}

function showBalance(
  { row, packName, matches, wouldPay }: ExplainedBalance,
): Explained["credits"][number] {
  return {
    balanceId: row.id,
    packId: row.packId,
    packName,
    unit: row.unit,
    remaining: numberOf(row.remaining),
    expiresAt: timeTextOrNull(row.expiresAt),
    matches,
    wouldPay: numberOf(wouldPay),
  };
}
