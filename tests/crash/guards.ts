// What the clients can prove of a rate and of what is in flight, by the times of their calls: a call was decided between
// its first sending and its answer, and a hold was open at least from its answer to its first settlement.

import type { Record } from "./record.ts";
import { GUARDED_USER, OPEN_QUOTA, RATE_QUOTA, RATE_SECONDS } from "./stage.ts";

/** How far the clocks of two processes may be apart. */
const CLOCKS_APART_MS = 100;

/** An amount that certainly counted from one moment to another. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Lists where more was allowed than the limits of the guarded user. */
export function guardFaults({ calls, holds }: Record): string[] {
  const faults: string[] = [];
  const tracks = [...calls.values()].filter(({ userId, kind, fate, isBlocked }) =>
    userId === GUARDED_USER && kind === "track" && fate === "acked" && !isBlocked
  );
  const withinMs = RATE_SECONDS * 1000 - CLOCKS_APART_MS;
  for (const { sentAt: from } of tracks) {
    const within = tracks.filter(({ sentAt, answeredAt }) =>
      sentAt >= from && (answeredAt as number) < from + withinMs
    );
    const sum = sumOf(within);
    if (sum > RATE_QUOTA) faults.push(`${sum} of ${RATE_QUOTA} were allowed within ${RATE_SECONDS} s`);
  }
  const open = [...holds.values()].filter(({ call }) => call.userId === GUARDED_USER).map((hold): Span => ({
    from: hold.call.answeredAt as number,
    to: Math.min(Infinity, ...hold.settlements.map(({ sentAt }) => sentAt)),
    count: hold.call.count,
  }));
  for (const { from } of open) {
    const sum = sumOf(open.filter((span) => span.from <= from && from < span.to));
    if (sum > OPEN_QUOTA) faults.push(`${sum} of ${OPEN_QUOTA} were in flight at once`);
  }
  if (tracks.length === 0 && calls.size > 500) faults.push("No call of a rate was allowed");
  return faults.slice(0, 5);
}

function sumOf(spans: readonly { readonly count: number }[]): number {
  return spans.reduce((sum, { count }) => sum + count, 0);
}
