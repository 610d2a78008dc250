// What answers say of a call's credits, and the warning where nothing rates a call that credits are for.

import { ZERO } from "./decimal.ts";
import type { WireData } from "./document.ts";
import { namesCredits } from "./final_amounts.ts";
import type { PathDecision } from "./levels.ts";
import { creditsAnswer, type Rated } from "./rates.ts";
import type { Reservation, World } from "./state.ts";
import { walletOf } from "./wallet.ts";

/** Of a call that asks for quota, or of one that is over. */
export function askedCredits(world: World, path: PathDecision, now: number): WireData {
  const { own, taking } = path;
  const levels = [own, ...taking.filter((level) => level !== own)];
  const isCovered = levels.some(({ asked, decision }) =>
    decision.matched.some(({ group }) => group.unit === "credits") ||
    walletOf(world, asked, now, "credits").length > 0
  );
  return ratedAnswer(world, own.asked.rated, isCovered);
}

/** Of a settled hold; asked before its credits move. */
export function settledCredits(
  world: World,
  holds: Reservation[],
  rated: Rated,
  input: WireData,
  now: number,
): WireData {
  const isCovered = holds.some((hold) =>
    hold.lines.some(({ unit }) => unit === "credits") ||
    hold.credits.some(({ balance }) => balance.unit === "credits") ||
    walletOf(world, hold, now, "credits").length > 0
  );
  return ratedAnswer(world, rated, isCovered && !namesCredits(input));
}

function ratedAnswer(world: World, rated: Rated, isCovered: boolean): WireData {
  world.note(`rates: ${rated.rated ? "rated" : isCovered ? "unrated, and covered" : "unrated"}`);
  if (rated.rated && rated.total === ZERO) world.note("rates: a rated call that costs nothing");
  const isTold = !rated.rated && isCovered;
  return { ...creditsAnswer(world.catalog, rated), ...(isTold ? { warnings: ["unrated_event"] } : {}) };
}

/** The members of several answers, with the warnings of all. */
export function joined(...parts: WireData[]): WireData {
  const warnings = parts.flatMap((part) => part["warnings"] as string[] | undefined ?? []);
  return { ...Object.assign({}, ...parts), ...(warnings.length > 0 ? { warnings } : {}) };
}
