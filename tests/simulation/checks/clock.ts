// The clock of a mode: after an answer reported its time, every later call sees that time or a later one, at any
// process.

import type { Call } from "../history.ts";
import type { Checker } from "../watch.ts";

/** Looks at every turn after a move of the test clock. */
export function clockChecker(): Checker {
  return {
    name: "clock",
    atEnd({ calls }) {
      const moves = calls.flatMap(toldMoves);
      for (const { no, attempts, tenant } of calls) {
        for (const { turns, sentAt } of attempts) {
          for (const { now } of turns) {
            const before = moves.find((move) =>
              move.tenant === tenant && move.toldAt < sentAt && now < move.toMs
            );
            if (before === undefined) continue;
            throw new Error(`call ${no} ran on a clock that call ${before.no} had moved past`);
          }
        }
      }
    },
  };
}

/** The moves that answers had reported before a call. */
function toldMoves({ no, tenant, request: { op }, answer, answeredAt }: Call) {
  const now = answer?.model.data?.["now"];
  if (op !== "testClock" || answeredAt === null || typeof now !== "string") return [];
  return [{ no, tenant, toldAt: answeredAt, toMs: Date.parse(now) }];
}
