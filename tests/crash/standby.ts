// A second process on one database: how it is started, what it answers while it waits, and what is asked of a stopped
// process so that it has something to say when it wakes.

import assert from "node:assert/strict";
import { pause, type Program, until } from "./program.ts";
import { ADMIN_TOKEN, type Stage, WIDE_USERS } from "./stage.ts";
import { answerOf, once, type Outcome } from "./wire.ts";

/** A silent session is ended by the server after 8 s; the standby then takes over within this time. */
export const SILENT_TAKEOVER_MS = 30_000;
/** A standby takes over within this time of the writer's death. */
export const TAKEOVER_MS = 5_000;

/** A process and where it listens. */
export interface Node {
  readonly program: Program;
  readonly origin: string;
}

/** Starts a second process and waits until it waits. */
export async function startStandby(
  stage: Stage,
  settings: Readonly<Record<string, string>> = {},
): Promise<Node> {
  const program = stage.start(settings);
  const origin = await program.origin();
  await until(
    "the second process waits",
    20_000,
    () => program.stderr.includes("Waiting as a standby") || null,
  );
  return { program, origin };
}

/** The answer of a process that is not the writer. */
export function assertStandby(outcome: Outcome): void {
  const { status, headers, body } = answerOf(outcome);
  assert.equal(status, 503, JSON.stringify(body));
  assert.equal(body.error.code, "unavailable");
  assert.ok(Number(headers.get("retry-after")) >= 1);
}

/** Calls that lie in front of a stopped process when it wakes: the first thing that it does is answer them. */
export async function askWhileStopped(stage: Stage, { origin }: Node): Promise<Promise<Outcome>[]> {
  const bearer = stage.secretKey;
  const calls = WIDE_USERS.flatMap((userId) => [
    { method: "GET", path: `/api/v1/usage?userId=${userId}`, bearer },
    { method: "GET", path: `/api/v1/events?userId=${userId}`, bearer },
    { method: "GET", path: `/api/v1/users/${userId}`, bearer },
    { method: "GET", path: "/api/admin/v1/workspaces", bearer: ADMIN_TOKEN },
    { method: "POST", path: "/api/v1/can-use", bearer, body: { userId, event: "image.x" } },
    { method: "POST", path: "/api/v1/commit", bearer, body: { reservationId: "rsv_1_unknown" } },
    { method: "POST", path: "/api/v1/reserve", bearer, body: { userId, event: "image.stale" } },
  ]);
  const asked = calls.map((call) => once(origin, call));
  await pause(200);
  return asked;
}
