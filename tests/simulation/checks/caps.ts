// The workspace cap, from rows alone: what counts as an operation is counted as it becomes durable, by the month in which
// it was written. Whoever was let through found room, whoever was refused did not, and the kept total is the sum. The
// model can't be asked: a promotion falls due for it at its moment, and counts for the product when it is written.

import type { RowChange } from "../../../actors/port.ts";
import { monthOf } from "../../model/state.ts";
import type { Attempt } from "../history.ts";
import type { Turn } from "../recorder.ts";
import type { Checker, Scene } from "../watch.ts";

const CAPPED: ReadonlySet<string> = new Set(["reserve", "track", "alias"]);
const CODES: ReadonlySet<unknown> = new Set(["workspace_limit_reached", "test_quota_exceeded"]);

/** Whether a process refused a call at the cap of operations. */
export function isAtCap({ call, reply }: Attempt): boolean {
  return CAPPED.has(call.request.op) && CODES.has(reply?.model.code);
}

/** Looks at every call that the cap is for. */
export function capsChecker(): Checker {
  /** When each operation was written, in the order of all that was noted, by month. */
  const written = new Map<string, number[]>();
  const usedBefore = (month: string, order: number) =>
    (written.get(month) ?? []).filter((place) => place < order).length;
  return {
    name: "caps",
    onTurn(turn, { caps: { operationCap } }) {
      // A merge is let through before it reads and decides; others are served meanwhile.
      const used = usedBefore(monthOf(turn.lookedAtMs), turn.order);
      if (operationCap !== null && takesRoom(turn) && used >= operationCap) {
        throw new Error(`${asked(turn)} was let through at ${used} of ${operationCap} operations`);
      }
      const month = monthOf(turn.wroteAtMs);
      const places = written.get(month) ?? [];
      written.set(month, places);
      for (const change of turn.changes) if (isOperation(change)) places.push(turn.decidedAt);
    },
    atEnd({ calls, caps: { operationCap, mode }, expected }: Scene) {
      for (const attempt of calls.flatMap(({ attempts }) => attempts)) {
        if (!isAtCap(attempt) || attempt.reply?.isReplayed === true) continue;
        const since = monthOf(attempt.sentOnMs);
        const until = attempt.repliedAt ?? Infinity;
        const isFull = [...written.keys()].some((month) =>
          month >= since && usedBefore(month, until) >= (operationCap ?? Infinity)
        );
        if (!isFull) throw new Error(`call ${attempt.call.no} was refused below ${operationCap} operations`);
      }
      for (const [month, { length }] of written) {
        const kept = expected.list("operations", (row) => row.month === month && row.mode === mode)[0]?.used;
        if (Number(kept ?? 0) !== length) {
          throw new Error(`${month} has ${length} operations and a total of ${kept}`);
        }
      }
    },
  };
}

/** Whether a turn did what the cap is there to refuse. */
function takesRoom({ attempt, changes }: Turn): boolean {
  return attempt !== null && CAPPED.has(attempt.call.request.op) &&
    changes.some(({ table, verb }) =>
      table === "merges" || table === "events" || table === "reservations" && verb === "append"
    );
}

/** Section 7 of the decisions. */
function isOperation({ table, row }: RowChange): boolean {
  switch (table) {
    case "events":
      return row.matchStatus === "matched" || row.matchStatus === "matched_credits_only";
    case "subscription_events":
      return row.type === "merged" || row.type === "promoted";
    case "credit_ledger":
      return row.reason === "merged_from_alias" || row.reason === "merge_dedupe";
    default:
      return false;
  }
}

function asked({ attempt }: Turn): string {
  return `call ${attempt?.call.no} ${attempt?.call.request.op}`;
}
