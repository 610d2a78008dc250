// Makes the unique part of ids, 20 characters: ten of the time, four of a running number within the millisecond, six
// of the process. So ids grow with time, which keeps indexes local, and two processes never make the same one.

import { ID_PREFIX, type IdSource, ownedId } from "../domain/values/ids.ts";
import type { Clock } from "./clock.ts";

const DIGITS = "0123456789abcdefghijklmnopqrstuv";
const RUN_MAX = 32 ** 4;
/** Every two-digit number. */
const PAIRS = Array.from({ length: 32 ** 2 }, (_, value) => base32(value, 2));

/** Ids from a clock and six random characters of this process. */
export function makeIdSource(clock: Clock): IdSource {
  const suffix = [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => DIGITS[byte & 31]).join("");
  let lastMs = 0;
  let run = 0;
  let timeText = "";
  const unique = (): string => {
    const now = clock.now();
    if (now > lastMs || run >= RUN_MAX) {
      lastMs = Math.max(now, lastMs + 1);
      run = 0;
      timeText = base32(lastMs, 10);
    }
    const [high, low] = [PAIRS[run >> 10] as string, PAIRS[run & 1023] as string];
    run += 1;
    return timeText + high + low + suffix;
  };
  return {
    next: (kind) => ID_PREFIX[kind] + unique(),
    nextOwned: (kind, owner) => ownedId(kind, owner, unique()),
  };
}

function base32(value: number, length: number): string {
  return value.toString(32).padStart(length, "0");
}
