// Whether the credits of a call count anywhere: only then does it matter that the call has no rate.

import { hasCredit, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { countsUnit } from "./availability.ts";
import { type PathAssessment, takesPart } from "./levels.ts";

/** Whether a limit group or a balance in credits covers a call: those of the caller, and of users above that take part. */
export function countsCredits(
  draft: Draft,
  purchase: Purchase,
  { quotas, levels }: Pick<PathAssessment, "quotas" | "levels">,
): boolean {
  return countsUnit(quotas, "credits") || paysCredits(draft, purchase) ||
    levels.some(({ draft: level, assessment }) =>
      countsUnit(assessment.quotas, "credits") || (takesPart(assessment) && paysCredits(level, purchase))
    );
}

/** Whether a balance in credits covers a call. */
export function paysCredits(draft: Draft, purchase: Purchase): boolean {
  return draft.hasBalances && hasCredit(draft, purchase, "credits");
}
