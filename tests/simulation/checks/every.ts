// All checkers of a simulated world that look at its history.

import { booksChecker } from "./books.ts";
import { holdsChecker } from "./holds.ts";
import { grantsChecker } from "./grants.ts";
import { guardsChecker } from "./guards.ts";
import { answersChecker } from "./answers.ts";
import { batchesChecker } from "./batches.ts";
import { tablesChecker } from "./tables.ts";
import { livenessChecker } from "./liveness.ts";
import { messagesChecker } from "./messages.ts";
import { capsChecker } from "./caps.ts";
import { clockChecker } from "./clock.ts";
import { registryChecker } from "./registry.ts";
import { refusalsChecker } from "./refusals.ts";
import { treeChecker } from "./tree.ts";
import { stripeChecker } from "./stripe.ts";
import { linearChecker } from "./linear.ts";
import { userKeysChecker } from "./user_keys.ts";
import { topUpsChecker } from "./top_ups.ts";
import type { SimTopUps } from "../top_ups.ts";
import type { SimStripe } from "../stripe.ts";

/** Makes the checkers. */
export function everyChecker(stripe: SimStripe | null, topUps: SimTopUps | null) {
  return [
    booksChecker(),
    holdsChecker(),
    grantsChecker(),
    guardsChecker(),
    answersChecker(),
    batchesChecker(),
    tablesChecker(),
    livenessChecker(),
    messagesChecker(),
    capsChecker(),
    clockChecker(),
    registryChecker(),
    refusalsChecker(),
    treeChecker(),
    userKeysChecker(),
    stripeChecker(stripe),
    topUpsChecker(topUps),
    linearChecker(),
  ];
}
