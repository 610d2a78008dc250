// `deno task fuzz`: searches with one seed after another until the time is over, and prints the request that failed
// so that it can be sent again.

import { parseArgs } from "node:util";
import { fuzz, type FuzzReport } from "./run.ts";
import { curlOf } from "./requests.ts";
import { openScene } from "./scene.ts";

const USAGE = `deno task fuzz [options]
  --seed N       the first seed (by chance)
  --minutes M    how long (1)
  --store URL    a PostgreSQL server (the embedded store)`;
/** A scene is left for a new one after so many bursts, so that users do not all become one. */
const SCENE_BURSTS = 20;
const SHOWN_BODY = 4_000;

function readOptions() {
  const { values } = parseArgs({
    args: Deno.args,
    options: { seed: { type: "string" }, minutes: { type: "string" }, store: { type: "string" } },
  });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
  const minutes = Number(values.minutes ?? 1);
  if (!Number.isSafeInteger(seed) || !(minutes > 0)) throw new Error(USAGE);
  return { seed, minutes, store: values.store };
}

async function main(): Promise<number> {
  const { seed, minutes, store } = readOptions();
  if (store !== undefined) Deno.env.set("HOLDFAST_TEST_DATABASE_URL", store);
  const end = performance.now() + minutes * 60_000;
  for (let next = seed; performance.now() < end; next++) {
    const scene = await openScene();
    try {
      const report = await fuzz(
        scene,
        next,
        ({ bursts }) => bursts < SCENE_BURSTS && performance.now() < end,
      );
      print(next, report);
      if (report.findings.length > 0) return 1;
    } finally {
      await scene.close();
    }
  }
  return 0;
}

function print(seed: number, { requests, statuses, succeeded, findings }: FuzzReport): void {
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `seed ${seed}: ${requests} requests, ${succeeded.size} routes succeeded (${counts.join(", ")})`,
  );
  for (const { text, request, answer } of findings.slice(0, 10)) {
    console.log(`\nFOUND with seed ${seed}: ${text}`);
    if (request !== null) console.log(curlOf(request, bodyFile(request.body)));
    if (answer !== null) console.log(`${answer.status} ${answer.text.slice(0, SHOWN_BODY)}`);
  }
}

function bodyFile(body: string | null): string | null {
  if (body === null || body.length <= SHOWN_BODY) return null;
  const path = Deno.makeTempFileSync({ prefix: "holdfast_fuzz_", suffix: ".json" });
  Deno.writeTextFileSync(path, body);
  return path;
}

if (import.meta.main) {
  try {
    Deno.exit(await main());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(2);
  }
}
