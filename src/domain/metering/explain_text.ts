// The text of an explanation: one or two plain sentences that a support person can read out. They name groups by label,
// amounts and unit; never keys, prompts or the call's metadata.

import type { RefusingRun } from "../accounts/run.ts";
import type { Amounts } from "../pricing/amounts.ts";
import { type Amount, decimalOf, ONE } from "../values/amount.ts";
import { shownCount } from "../state/counter.ts";
import { isGuard, type Unit } from "../catalog/plan.ts";
import type { ExplainedBalance, ExplainedGroup, Fit } from "./explanation.ts";
import type { FullShare } from "../accounts/shares.ts";
import type { Assessment, GroupReading } from "./availability.ts";

/** A group that covers the call. */
type Covering = ExplainedGroup & { readonly fit: Fit };

/** One user of the path in an explanation. */
interface Explained {
  readonly userId: string;
  readonly assessment: Assessment;
  readonly groups: readonly ExplainedGroup[];
  readonly credits: readonly ExplainedBalance[];
  /** The groups with too little left, apart from shares. */
  readonly limited: readonly GroupReading[];
  /** The groups in which the caller's share has too little left; absent for the caller. */
  readonly fullShares?: readonly FullShare[];
}

/**
 * Says in one or two sentences why a call is allowed or refused, and at which user of the path or by which run.
 *
 * @param path the caller first, then the users above
 * @param refusing the runs that refuse the call
 */
export function explainCall(
  path: readonly [Explained, ...Explained[]],
  refusing: readonly RefusingRun[],
  needs: Amounts,
): string {
  const [first, ...others] = refusing;
  if (first === undefined) return explainPath(path);
  const isRefusedByUser = path.some(({ assessment }) => assessment.reasons.length > 0);
  if (!isRefusedByUser) {
    const text = refusedByRun(first, needs);
    return others.length === 0 ? text : `${text} ${runsOf(others)} ${refuseOf(others)} it too.`;
  }
  return `${explainPath(path)} ${runsOf(refusing)} ${refuseOf(refusing)} it too.`;
}

/** The text of a call that a run refuses, with the numbers of its first limit without room. */
function refusedByRun({ run, reason, limits: [limit] }: RefusingRun, needs: Amounts): string {
  if (limit === undefined) throw new Error("A run refuses a call, and every limit has enough left");
  const { unit, event, quota, count, held } = limit;
  const ofEvents = event === "*" ? "" : ` of ${quoted(event)}`;
  const used = `${decimalOf(count)} of ${decimalOf(quota)} ${unit}${ofEvents} are used` +
    (held > 0n ? ` (${decimalOf(held)} of them held)` : "");
  if (reason === "unpriced_model") {
    return `Refused: the run ${nameOfRun(run)}, in which ${used}, needs to know what the call costs. ` +
      "The call names neither a model with a price nor its cost.";
  }
  const need = needs[unit] === 0n
    ? "a call that needs 0 requires a remaining balance"
    : `the call needs ${decimalOf(needs[unit])}`;
  return `Refused by the run ${nameOfRun(run)}: ${used}, and ${need}.`;
}

function runsOf(refusing: readonly RefusingRun[]): string {
  const names = listed(refusing.map(({ run }) => nameOfRun(run)));
  return `The ${refusing.length === 1 ? "run" : "runs"} ${names}`;
}

function nameOfRun({ name, id }: RefusingRun["run"]): string {
  return quoted(name ?? id);
}

function explainPath(path: readonly [Explained, ...Explained[]]): string {
  const [own, ...above] = path;
  if (above.length === 0) return explainText(own);
  const refusing = path.filter(({ assessment }) => assessment.reasons.length > 0);
  const taking = path.filter(({ assessment }) => assessment.quotas.length > 0);
  const [first = taking[0] ?? own, ...others] = refusing;
  const text = textAt(first, first === own);
  if (others.length > 0) return `${text} ${namesOf(others)} ${refuseOf(others)} it too.`;
  const also = taking.filter((each) => each !== first);
  return refusing.length > 0 || also.length === 0 ? text : `${text} It counts for ${namesOf(also)} too.`;
}

/** The text of one user, who is named where it is not the caller. */
function textAt(level: Explained, isCaller: boolean): string {
  const { userId, assessment } = level;
  if (isCaller) return explainText(level);
  const hasEnded = assessment.reasons[0] === "no_subscription";
  if (hasEnded) return `Refused at ${quoted(userId)}: its subscription has ended.`;
  return explainText(level).replace(/^(Allowed|Refused)/, `$1 at ${quoted(userId)}`);
}

function namesOf(users: readonly Explained[]): string {
  return listed(users.map(({ userId }) => quoted(userId)));
}

function refuseOf(users: readonly unknown[]): string {
  return users.length === 1 ? "refuses" : "refuse";
}

/** Says in one or two sentences why one user's plan and credits allow or refuse a call. */
function explainText({ assessment, groups, credits, limited, fullShares }: Explained): string {
  const covering = groups.filter((each): each is Covering => each.fit !== null);
  const [reason] = assessment.reasons;
  if (reason === undefined) {
    const quotas = covering.filter(({ group }) => !isGuard(group));
    const [first] = quotas;
    if (first === undefined) return paidByCredits(assessment, credits);
    return soldPast(assessment, quotas, credits) ?? allowed(first, quotas, credits);
  }
  switch (reason) {
    case "no_subscription":
      return `Refused: ${noPlan(assessment)}. ${shortCredits(credits)}`;
    case "unmatched_event":
      return `Refused: ${noPlan(assessment)}. ${guardsAlone(covering)}${
        nearMiss(groups) ?? shortCredits(credits)
      }`;
    case "unpriced_model":
      return unpriced(covering);
    case "limit_reached":
    case "reservation_headroom_exceeded":
    case "rate_limit_reached":
    case "concurrency_limit_reached": {
      const ids = new Set(limited.map(({ group }) => group.id));
      const refusing = covering.filter(({ group }) => ids.has(group.id));
      const [quotas, guards] = [false, true].map((is) =>
        refusing.filter(({ group }) => isGuard(group) === is)
      );
      return refused([...quotas ?? [], ...guards ?? []], reason !== "reservation_headroom_exceeded", credits);
    }
    case "run_limit_reached":
      throw new Error("The plan and credits of a user refuse nothing for a run");
    case "member_limit_reached":
      return refusedByShare(fullShares ?? [], covering);
  }
}

/** Names the first group in which the caller's share has too little left, and the labels of all others. */
function refusedByShare(full: readonly FullShare[], covering: readonly Covering[]): string {
  const refusing = covering.filter(({ group }) => full.some((share) => share.group.id === group.id));
  const [[main, ...others], [share]] = [refusing, full];
  if (main === undefined || share === undefined) {
    throw new Error("A share refuses a call, and each has enough left");
  }
  const used = `${decimalOf(share.count)} of ${decimalOf(share.quota)} are used by this user`;
  const need = main.fit.need === 0n
    ? "a call that needs 0 requires a remaining share"
    : `the call needs ${decimalOf(main.fit.need)}`;
  const also = others.length === 0 ? "" : ` ${labelsOf(others)} ${haveOf(others)} no room either.`;
  return `Refused by the limit of each member of ${nameOf(main)}: ${used}, and ${need}.${also}`;
}

function allowed(
  first: Covering,
  covering: readonly Covering[],
  credits: readonly ExplainedBalance[],
): string {
  const main = covering.find(({ fit }) => !fit.fits) ?? first;
  const { fit } = main;
  const others = covering.filter((each) => each !== main);
  const paid = paidBy(credits);
  const start = fit.fits
    ? `Allowed: the limit ${nameOf(main)} has room, with ${usedOf(main)} used and ${
      decimalOf(fit.need)
    } needed`
    : `Allowed with credits: the limit ${nameOf(main)} has room for ${decimalOf(fit.room)}, with ${
      usedOf(main)
    } used, and the call needs ${decimalOf(fit.need)}`;
  if (paid !== null) return `${start}. ${paid}.`;
  if (!fit.fits) {
    return `${start}. Such a call passes while the limit or matching credits have anything left.`;
  }
  return others.length === 0 ? `${start}.` : `${start}. ${labelsOf(others)} ${haveOf(others)} room too.`;
}

/** The text of a call that is sold in part past a quota; null for any other. */
function soldPast(
  { lines }: Assessment,
  covering: readonly Covering[],
  credits: readonly ExplainedBalance[],
): string | null {
  const sold = lines.find(({ overage }) => overage !== undefined);
  const main = covering.find(({ group }) => group.id === sold?.groupId);
  if (sold?.overage === undefined || main === undefined) return null;
  const { need, room } = main.fit;
  const start = `Allowed as overage: the limit ${nameOf(main)} has room for ${decimalOf(room)}, with ${
    usedOf(main)
  } used, and the call needs ${decimalOf(need)}`;
  const paid = paidBy(credits);
  const past = `${decimalOf(sold.overage)} of it ${sold.overage === ONE ? "is" : "are"} sold past the quota.`;
  return paid === null ? `${start}. ${past}` : `${start}. ${paid}, and ${past}`;
}

function paidByCredits(assessment: Assessment, credits: readonly ExplainedBalance[]): string {
  return `Allowed with credits alone: ${noPlan(assessment)}. ${paidBy(credits)}.`;
}

/** Names the first group with its numbers, and the labels of all others. */
function refused(
  refusing: readonly Covering[],
  byQuota: boolean,
  credits: readonly ExplainedBalance[],
): string {
  const [main, ...others] = refusing;
  if (main === undefined) throw new Error("A limit refuses a call, and every group has enough left");
  const used = `${usedOf(main)} are used${heldOf(main)}`;
  const need = main.fit.need === 0n
    ? "a call that needs 0 requires a remaining balance"
    : `the call needs ${decimalOf(main.fit.need)}`;
  const why = byQuota ? `${used}, and ${need}` : `${used}, ${headroomOf(main)}, and ${need}`;
  const also = others.length === 0 ? "" : `${labelsOf(others)} ${haveOf(others)} no room either. `;
  const units = new Set(refusing.filter(({ group }) => !isGuard(group)).map(({ group }) => group.unit));
  const matching = credits.filter(({ row, matches }) => matches && units.has(row.unit));
  const left = matching.length === 0 ? "" : `Matching credits have too little left: ${leftOf(matching)}.`;
  if (also === "" || left === "") {
    return `Refused by the limit ${nameOf(main)}: ${why}. ${also}${left}`.trim();
  }
  return `Refused by the limit ${nameOf(main)}: ${why}. ${also.slice(0, -2)}; ${lowered(left)}`;
}

function headroomOf({ group: { headroom }, gate, quota, fit }: Covering): string {
  return headroom?.mode === "multiplier"
    ? `headroom asks for ${decimalOf(headroom.value)} times the need, which leaves room for ${
      decimalOf(fit.room)
    }`
    : `reservations stop at ${decimalOf(gate ?? quota)} (headroom)`;
}

function unpriced(covering: readonly Covering[]): string {
  const [main, ...others] = covering.filter(({ group }) => group.unit === "cents");
  if (main === undefined) throw new Error("A price is missing, and no group counts cents");
  const labels = others.length === 0
    ? ""
    : `, and so ${others.length === 1 ? "does" : "do"} ${labelsOf(others)}`;
  return `Refused: the limit ${nameOf(main)}, with ${
    usedOf(main)
  } used, needs to know what the call costs${labels}. ` +
    "The call names neither a model with a price nor its cost.";
}

function noPlan({ active }: Assessment): string {
  return active === null
    ? "the user has no active subscription"
    : `no limit of the plan ${quoted(active.plan.name)} covers the event`;
}

/** Names the guards of an event that no quota group covers; "" for none. */
function guardsAlone(guards: readonly Covering[]): string {
  if (guards.length === 0) return "";
  const only = guards.length === 1 ? "only refuses" : "only refuse";
  return `${labelsOf(guards)} ${only}: a rate or concurrency limit covers no event. `;
}

/** Names the groups that would cover the event with other metadata. */
function nearMiss(groups: readonly ExplainedGroup[]): string | null {
  const near = groups.filter(({ meeting }) => meeting.why === "metadata");
  if (near.length === 0) return null;
  return `${labelsOf(near)} ${near.length === 1 ? "applies" : "apply"} only with other metadata.`;
}

function shortCredits(credits: readonly ExplainedBalance[]): string {
  const matching = credits.filter(({ matches }) => matches);
  if (matching.length === 0) return "No matching credits.";
  return `Matching credits do not cover it: ${leftOf(matching)} left.`;
}

function paidBy(credits: readonly ExplainedBalance[]): string | null {
  const paying = credits.filter(({ wouldPay }) => wouldPay > 0n);
  if (paying.length === 0) return null;
  const sums = sumsOf(paying.map(({ row, wouldPay }) => [row.unit, wouldPay]));
  const packs = [...new Set(paying.map(({ packName }) => quoted(packName)))];
  return `Credits from ${listed(packs)} cover ${sums}`;
}

function leftOf(credits: readonly ExplainedBalance[]): string {
  return sumsOf(credits.map(({ row }) => [row.unit, row.remaining]));
}

/** Adds amounts up by unit: "3 and 40 tokens"; counts need no unit. */
function sumsOf(parts: readonly (readonly [Unit, Amount])[]): string {
  const sums = new Map<Unit, Amount>();
  for (const [unit, amount] of parts) sums.set(unit, (sums.get(unit) ?? 0n) + amount);
  return listed(
    [...sums].map(([unit, amount]) => unit === "count" ? decimalOf(amount) : `${decimalOf(amount)} ${unit}`),
  );
}

function nameOf({ group }: ExplainedGroup): string {
  return group.unit === "count" ? quoted(group.label) : `${quoted(group.label)} (${group.unit})`;
}

function usedOf({ counter, quota, overageMax }: ExplainedGroup): string {
  const used = `${decimalOf(shownCount(counter))} of ${decimalOf(quota)}`;
  if (overageMax === undefined) return used;
  const sold = decimalOf(counter.overage ?? 0n);
  return `${used} (${overageMax === null ? sold : `${sold} of ${decimalOf(overageMax)}`} sold past it)`;
}

function heldOf({ held }: ExplainedGroup): string {
  return held === 0n ? "" : ` (${decimalOf(held)} of them held by open reservations)`;
}

function labelsOf(groups: readonly ExplainedGroup[]): string {
  return listed(groups.map(({ group }) => quoted(group.label)));
}

function haveOf(groups: readonly unknown[]): string {
  return groups.length === 1 ? "has" : "have";
}

function quoted(name: string): string {
  return `"${name}"`;
}

function listed(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

function lowered(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
