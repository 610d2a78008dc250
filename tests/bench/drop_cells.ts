// How long dropping every cell takes at a stop, and how long it holds the event loop: real parts of a term on a store in
// memory, with one user, two totals and one first answer for each workspace.
//
//     deno run --lock=tests/deno.lock -A tests/bench/drop_cells.ts 100000

import process from "node:process";
import { CELLS } from "../../actors/doors.ts";
import { startRuntime } from "../actors/runtime.ts";
import { MemoryStore } from "../support/memory_store.ts";

const workspaces = Number(Deno.args[0] ?? 100_000);

const { term } = await startRuntime(new MemoryStore());
const cells = Array.from({ length: CELLS }, () => ({
  workspaces: new Set<string>(),
  realms: new Set<number>(),
}));
for (let place = 0; place < workspaces; place++) {
  const cell = cells[place % CELLS];
  const workspaceId = `ws_${place}`;
  cell?.workspaces.add(workspaceId);
  cell?.realms.add(place);
  if (place < 40_000) await term.directory.actorOf(place, `user_${place}`);
  const batch = term.gate.add([]);
  term.budget.takeInto(batch, workspaceId, "live", 1);
  term.budget.spendInto(batch, workspaceId, 1n);
  const row = term.idempotency.keep(
    { realm: place, key: "k", requestHash: "h", status: 200, body: "{}" },
    null,
  );
  term.idempotency.remember(row, batch);
  if (place % 1000 === 0) await batch.durable;
}
await term.flush();

let longestMs = 0;
let isDone = false;
const watch = async () => {
  for (let before = performance.now(); !isDone;) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    const now = performance.now();
    longestMs = Math.max(longestMs, now - before);
    before = now;
  }
};
const watched = watch();
const startedAt = performance.now();
const usedBefore = process.cpuUsage();
for (const cell of cells) await term.drop(cell);
const ms = performance.now() - startedAt;
const { user, system } = process.cpuUsage(usedBefore);
isDone = true;
await watched;
const cpuMs = (user + system) / 1000;
console.log(
  `${workspaces} workspaces: ${ms.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of processor time, ` +
    `longest hold ${longestMs.toFixed(1)} ms`,
);
term.fail(new Error("The measurement ends"));
