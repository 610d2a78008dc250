// Summaries of users for lists.

import type { UserSummary } from "../../domain/state/summary.ts";
import type { Millis } from "../../domain/values/period.ts";
import { column, mapped, table } from "./columns.ts";

/** How a window without an end is stored: past every time, so that one range of the index has all running windows. */
const NO_END: Millis = 8_640_000_000_000_000;

export const USER_SUMMARIES = table<UserSummary>("user_summaries", 1, {
  userKey: column("user_key"),
  realm: column("realm"),
  groupId: column("group_id", { mutable: true }),
  percent: column("percent", { mutable: true }),
  until: mapped<Millis | null>(
    "until_ms",
    (until) => until ?? NO_END,
    (value) => value === NO_END ? null : value as Millis,
    { mutable: true },
  ),
  seenAt: column("seen_at_ms", { mutable: true }),
});
