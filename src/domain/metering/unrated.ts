// Whether the credits of a call count anywhere: only then does it matter that the call has no rate.

import { runsCount } from "../accounts/run.ts";
import { hasCredit, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import type { Run } from "../state/run.ts";
import { countsUnit } from "./availability.ts";
import type { PathAssessment } from "./levels.ts";

/** Whether a limit group of the path, a run or a balance of the caller counts credits of a call. */
export function countsCredits(
  draft: Draft,
  purchase: Purchase,
  { quotas, levels, runs }: Pick<PathAssessment, "quotas" | "levels" | "runs">,
): boolean {
  return countsUnit(quotas, "credits") ||
    levels.some(({ assessment }) => countsUnit(assessment.quotas, "credits")) ||
    paysCredits(draft, purchase, runs);
}

/** Whether a run or a balance of the caller counts credits of a call. */
export function paysCredits(draft: Draft, purchase: Purchase, runs: readonly Run[]): boolean {
  return runsCount(runs, purchase.event, "credits") ||
    (draft.hasBalances && hasCredit(draft, purchase, "credits"));
}
