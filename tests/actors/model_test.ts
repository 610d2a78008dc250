// The independent model against the whole service, over HTTP in this process: the same workload, answer by answer.
// Then the same again while actors leave memory, sweeps run and the process crashes between any two calls: no
// answer may change (laws 5, 6 and 9 of the architecture).

import assert from "node:assert/strict";
import { passivateIdle } from "./runtime.ts";
import { catalogs } from "../model/catalogs.ts";
import type { ModelReply, ModelRequest } from "../model/document.ts";
import { drive, type Outcomes } from "../model/drive.ts";
import { Random } from "../model/random.ts";
import { sendOverWire } from "../model/wire.ts";
import { ManualClock, startTestService, type TestApp, type TestService } from "../support/test_service.ts";

const STEPS = 600;
const START_MS = Date.UTC(2026, 0, 31, 10, 30, 0, 250);

type CatalogName = keyof typeof catalogs;

/** What a run does between two calls. */
type Trouble = (service: TestService, app: TestApp) => Promise<void>;

interface Run {
  readonly catalog: CatalogName;
  readonly seed: number;
  readonly steps: number;
  /** What may happen before a call, with how likely it is. */
  readonly troubles?: readonly (readonly [probability: number, trouble: Trouble])[];
  readonly mode?: "live" | "test";
  readonly operationCap?: number;
  /** Whether users are merged on the way. */
  readonly merges?: boolean;
}

/** Drives a fresh service through one workload. */
async function run(
  { catalog, seed, steps, troubles = [], mode = "live", operationCap, merges = false }: Run,
): Promise<Outcomes> {
  const service = await startTestService(new ManualClock(START_MS));
  try {
    const caps = operationCap === undefined
      ? {}
      : { [mode === "live" ? "operationCap" : "testOperationCap"]: operationCap };
    const document = catalogs[catalog];
    const app = await service.newApp(document, caps);
    const key = mode === "live" ? app.secretLive : app.secretTest;
    const random = new Random(seed ^ 0x5eed);
    const send = async (request: ModelRequest, nowMs: number): Promise<ModelReply> => {
      service.clock.set(nowMs);
      for (const [probability, trouble] of troubles) {
        if (random.chance(probability)) await trouble(service, app);
      }
      return await sendOverWire((method, path, body) => app.call(method, path, body, { key }), request);
    };
    const options = { catalog: document, seed, steps, startMs: START_MS, invalid: true, mode, merges, send };
    return await drive(operationCap === undefined ? options : { ...options, operationCap });
  } finally {
    await service.close();
  }
}

/** Lets every actor go; all of them are idle once the tables have what they decided. */
async function passivate({ serving }: TestService): Promise<void> {
  const { term } = serving();
  await term.flush();
  passivateIdle(term.directory);
  assert.equal(term.directory.size, 0);
}

async function sweep(service: TestService): Promise<void> {
  const { status } = await service.admin("POST", "/sweep");
  assert.equal(status, 200);
}

/** Ends the term without a drain; what was acknowledged is in the journal alone. */
function crash(service: TestService): Promise<void> {
  return service.restart();
}

/** The same run over each catalog, side by side: a server's commits overlap. */
async function runAll(options: Omit<Run, "catalog" | "steps">): Promise<Map<string, number>> {
  const all: Outcomes = new Map();
  await Promise.all((Object.keys(catalogs) as CatalogName[]).map(async (catalog) => {
    try {
      const outcomes = await run({ ...options, catalog, steps: STEPS });
      for (const [outcome, times] of outcomes) all.set(outcome, (all.get(outcome) ?? 0) + times);
    } catch (error) {
      throw new Error(`catalog "${catalog}": ${(error as Error).message}`, { cause: error });
    }
  }));
  return all;
}

Deno.test("every answer is the one that the model predicts", async () => {
  const outcomes = await runAll({ seed: 101 });
  for (const outcome of ["commit recharged", "commit overflow", "users promoted", "users reactivated"]) {
    assert.ok((outcomes.get(outcome) ?? 0) > 0, outcome);
  }
});

Deno.test("every answer is the one that the model predicts while users are merged", async () => {
  const outcomes = await runAll({ seed: 102, merges: true });
  assert.ok((outcomes.get("alias merged") ?? 0) > 10);
});

Deno.test("no answer changes by passivating and sweeping anywhere", async () => {
  await runAll({ seed: 201, troubles: [[0.06, passivate], [0.04, sweep]], merges: true });
});

Deno.test("no answer changes by a crash anywhere", async () => {
  await runAll({ seed: 301, troubles: [[0.02, crash], [0.02, passivate], [0.02, sweep]], merges: true });
});

Deno.test("the operation cap refuses reserve and track as the model predicts, also after a crash", async () => {
  const troubles = [[0.02, crash]] as const;
  for (const mode of ["live", "test"] as const) {
    const outcomes = await run({
      catalog: "ladder",
      seed: 401,
      steps: 800,
      mode,
      operationCap: 40,
      troubles,
    });
    const code = mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded";
    assert.ok((outcomes.get(`reserve ${code}`) ?? 0) > 0);
    assert.ok((outcomes.get(`track ${code}`) ?? 0) > 0);
  }
});
