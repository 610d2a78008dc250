// The attacks. Each runs until the signal ends it, and then reports what it achieved: a text is a breach.

import { BODY_ATTACKS } from "./bodies.ts";
import { RIGHT_ATTACKS } from "./rights.ts";
import { SHARE_ATTACKS } from "./shares.ts";
import { type Attack, untilEnd } from "./tools.ts";

export const ATTACKS: readonly Attack[] = [
  { name: "no attack", run: (_, signal) => untilEnd(signal).then(() => null) },
  ...BODY_ATTACKS,
  ...SHARE_ATTACKS,
  ...RIGHT_ATTACKS,
];
