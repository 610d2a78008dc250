// The record of one compose generation.

import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";

/** The record of one generation. Prompt and output are in the event's log, if texts are logged. */
export interface Generation {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly type: string;
  readonly model: string;
  readonly inputTokens: Amount;
  readonly outputTokens: Amount;
  readonly costCents: Amount;
  readonly eventId: string;
  readonly at: Millis;
}
