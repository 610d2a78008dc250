// The clock of a mode: after an answer reported its time, every later call sees that time or a later one, at any
// process; and each call moves it once, however often it is sent.

import type { Call } from "../history.ts";
import type { Tenant } from "../tenants.ts";
import type { Checker, Scene } from "../watch.ts";

/** Looks at every turn after a move of the test clock. */
export function clockChecker(): Checker {
  return {
    name: "clock",
    atEnd(scene) {
      const { calls } = scene;
      for (const tenant of scene.tenants) checkMoves(scene, tenant);
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

const DAY_MS = 24 * 3_600_000;

/** Whether the first answer of a call may be forgotten before it runs for the last time, which is before its next sending. */
function isForgotten({ attempts }: Call): boolean {
  const moments = attempts.flatMap(({ reply, seenOnMs }, index) => [
    ...seenOnMs,
    ...reply === null ? [attempts[index + 1]?.sentOnMs ?? Infinity] : [],
  ]);
  return Math.max(...moments) - Math.min(...moments) >= DAY_MS;
}

/** Compares how far a clock was moved with the calls that moved it, once for each key. */
function checkMoves({ calls, server }: Scene, tenant: Tenant): void {
  const moves = calls.filter((call) => call.tenant === tenant && call.request.op === "testClock");
  if (moves.some(isForgotten)) return;
  // Of calls with one key the first that arrives moves it, and any may have been that.
  const mayHaveMoved = moves.filter(({ answer }) => answer === null || answer.status === 200);
  const most = [...Map.groupBy(mayHaveMoved, ({ key }) => key).values()]
    .reduce((sum, calls) => sum + Math.max(...calls.map(distanceOf)), 0);
  const [row] = server.tables.list("realms", ({ realm }) => realm === tenant.realm);
  const offsetMs = Number(row?.clockOffsetMs ?? 0);
  if (offsetMs > most) {
    throw new Error(
      `the clock of ${tenant.appId} is ${offsetMs} ms ahead; calls moved it ${most} ms at most`,
    );
  }
}

function distanceOf({ request }: Call): number {
  return Number(request.input["advanceSeconds"]) * 1000;
}
