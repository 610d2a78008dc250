// The search for runs in which planted bugs show, on every core, and the file that keeps them.

import { PLANTED } from "./bugs.ts";
import { type Catch, knownPlaceOf, type Place } from "./hunt.ts";
import type { PlantedBug } from "./plant.ts";

/** Looks for each bug, several at a time. */
export async function searchAll(
  bugs: readonly PlantedBug[],
  report: (bug: PlantedBug, found: Catch | null) => void,
): Promise<void> {
  const left = bugs.values();
  const lanes = Array.from({ length: navigator.hardwareConcurrency }, async () => {
    const worker = new Worker(new URL("search_worker.ts", import.meta.url), { type: "module" });
    for (const bug of left) report(bug, await ask(worker, bug));
    worker.terminate();
  });
  await Promise.all(lanes);
}

function ask(worker: Worker, { name }: PlantedBug): Promise<Catch | null> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Catch | null>) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage(name);
  });
}

/** Keeps runs in which bugs show. A bug without a new one keeps what it has. */
export function writePlaces(found: ReadonlyMap<string, Place>): void {
  const lines = PLANTED.flatMap((bug) => {
    const place = found.get(bug.name) ?? knownPlaceOf(bug);
    if (place === undefined) return [];
    const { seed, steps } = place;
    return `  ${JSON.stringify(bug.name)}: { "seed": ${seed}, "steps": ${steps} }`;
  });
  Deno.writeTextFileSync(new URL("seeds.json", import.meta.url), `{\n${lines.join(",\n")}\n}\n`);
}
