// Several processes on one database: all serve, each owns some of the cells. Starts them, reads who owns which cell, and
// sends calls to a stopped process, which it must answer when it wakes.

import assert from "node:assert/strict";
import { wantedOwners } from "../../src/cluster/rendezvous.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { pause, type Program, until } from "./program.ts";
import { ADMIN_TOKEN, type Stage, untilReady, WIDE_USERS } from "./stage.ts";
import { answerOf, once, type Outcome } from "./wire.ts";

/** A silent session is ended by the server after 8 s; others have its cells within this time. */
export const SILENT_TAKEOVER_MS = 30_000;
/** Others have the cells of a killed process within this time; we see one second, on a busy machine more. */
export const TAKEOVER_MS = 10_000;
const SPREAD_MS = 180_000;
const LOOK_MS = 100;

/** A process and where it listens. */
export interface ClusterNode {
  readonly program: Program;
  readonly origin: string;
}

/** Starts one more process and waits until it serves. */
export async function startNode(
  stage: Stage,
  settings: Readonly<Record<string, string>> = {},
): Promise<ClusterNode> {
  const program = stage.start(settings);
  const origin = await program.origin();
  await untilReady(origin, SPREAD_MS);
  return { program, origin };
}

/** Starts processes, and waits until each has its cells. */
export async function startNodes(
  stage: Stage,
  count: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<ClusterNode[]> {
  const nodes: ClusterNode[] = [];
  for (let place = 0; place < count; place++) nodes.push(await startNode(stage, settings));
  await untilSpread(stage, nodes);
  return nodes;
}

/**
 * The number under which a process serves now, which it prints at each begin.
 *
 * @param store the database's name, where the process has several
 */
export function termOf({ program }: ClusterNode, store: string | null = null): number {
  const lines = program.stderr.matchAll(/"message":"Serving","term":(\d+),[^}]*?(?:"store":"(\w+)")?}/g);
  const said = [...lines].filter(([, , name]) => store === null || name === store).at(-1)?.[1];
  if (said === undefined) throw new Error("This process has never served");
  return Number(said);
}

/** The owner of each cell by the tables; null for a free cell. */
export async function ownersOf(stage: Stage): Promise<(number | null)[]> {
  const rows = await stage.look.query<{ term: number | null }>("select term from cells order by cell");
  return rows.map(({ term }) => term);
}

/** Waits until every cell is where it should be. */
export async function untilSpread(stage: Stage, nodes: readonly ClusterNode[]): Promise<void> {
  await until("every cell is where it should be", SPREAD_MS, async () => {
    const owners = await ownersOf(stage);
    const wanted = wantedOwners(nodes.map((node) => termOf(node, stage.storeName)));
    if (owners.every((owner, cell) => owner === wanted[cell])) return true;
    // Cells move seconds after a process came.
    await pause(LOOK_MS);
    return null;
  });
}

/** The process that owns a workspace; null while none of these does. */
export async function ownerOf(
  stage: Stage,
  nodes: readonly ClusterNode[],
  workspaceId: string,
): Promise<ClusterNode | null> {
  const owner = (await ownersOf(stage))[cellOf(workspaceId)];
  return nodes.find((node) => termOf(node) === owner) ?? null;
}

/** The answer of a process that may be unable to answer now. */
export function assertUnavailable(outcome: Outcome): void {
  const { status, headers, body } = answerOf(outcome);
  assert.equal(status, 503, JSON.stringify(body));
  assert.equal(body.error.code, "unavailable");
  assert.ok(Number(headers.get("retry-after")) >= 1);
}

/** Calls that lie in front of a stopped process when it wakes: the first thing that it does is answer them. */
export async function askWhileStopped(stage: Stage, { origin }: ClusterNode): Promise<Promise<Outcome>[]> {
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
