// Whether the credits of a call count anywhere: only then does it matter that the call has no rate.

import { hasCredit } from "../credits/wallet.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { countsUnit, type SizedCall } from "./availability.ts";
import { type PathAssessment, takesPart } from "./levels.ts";

/** The event of a call. */
type Asked = Pick<SizedCall, "event" | "metadata">;

/** Whether a limit group or a balance in credits covers a call: those of the caller, and of users above that take part. */
export function countsCredits(
  draft: Draft,
  context: Context,
  call: Asked,
  { quotas, levels }: Pick<PathAssessment, "quotas" | "levels">,
): boolean {
  if (!context.catalog.hasCredits) return false;
  return countsUnit(quotas, "credits") || hasCreditsFor(draft, context, call) ||
    levels.some(({ draft: level, assessment }) =>
      countsUnit(assessment.quotas, "credits") ||
      (takesPart(assessment) && hasCreditsFor(level, context, call))
    );
}

/** Whether a balance in credits covers a call. */
export function hasCreditsFor(
  draft: Draft,
  { catalog, now }: Context,
  { event, metadata }: Asked,
): boolean {
  return catalog.hasCredits && hasCredit(draft, { event, metadata, now }, "credits");
}
