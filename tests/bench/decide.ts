// What one decision costs, in process: the plan alone, then users with more and more credit balances, until a need
// that the last of a thousand pays; then three quotas, without and with a rate and a concurrency limit beside them.
// `deno task bench:decide` prints microseconds a decision, and what the limits beside the quotas cost.
import type { LimitGroupDocument } from "../../src/domain/catalog/catalog.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import { groupOf, planOf, Scene } from "../domain/scene.ts";

const ROUNDS = 400;
/** Rounds in which the code becomes as fast as in a service that runs. */
const WARM_UP_ROUNDS = 200;
const DECISIONS = 100;
const QUOTA = 1e9;

const PACKS = ["x.*", "y.*"].map((event, index) => ({
  id: `cpk_${index}`,
  name: `Pack ${index}`,
  kind: "generic" as const,
  unit: "count" as const,
  matches: [{ event }],
  items: [],
}));

/** A subscribed user with balances that cover the event, and with others that do not. */
function sceneOf(matching: number, others: number, quota: number): Scene {
  const scene = new Scene([planOf("plan_a", { g: quota })], undefined, PACKS, { isAudited: false });
  scene.subscribe("plan_a");
  const grant = (pack: string, times: number) => {
    for (let made = 0; made < times; made++) {
      scene.ask("grant", {
        pack,
        quantity: amountOf(1e6),
        externalRef: null,
        expiresAt: null,
        source: "purchase",
        notes: null,
      });
    }
  };
  grant("cpk_1", others);
  grant("cpk_0", matching);
  return scene;
}

const QUOTAS = ["a", "b", "c"].map((id) => groupOf(id, QUOTA));
const GUARDS: readonly LimitGroupDocument[] = [
  { ...groupOf("rate", QUOTA), period: { type: "rolling", seconds: 60 } },
  { ...groupOf("open", QUOTA), period: { type: "concurrent" } },
];

/** A user with these limits who made a call in each of the last seconds. */
function limitedBy(limits: readonly LimitGroupDocument[]): Scene {
  const scene = new Scene([planOf("plan_a", {}, { limits: [...limits] })], undefined, [], {
    isAudited: false,
  });
  scene.subscribe("plan_a");
  for (let second = 0; second < 5; second++) scene.wait(1).track(1);
  return scene;
}

function microsPerDecision(scene: Scene, count: number): number {
  const start = performance.now();
  for (let made = 0; made < DECISIONS; made++) {
    const id = scene.reserve(count) as string;
    scene.do("release", { reservationId: id, reason: null, errorCode: null });
    scene.state.forget(id);
    // As the service does once they are written: kept, they would measure the garbage collector.
    scene.changes.length = 0;
  }
  return (performance.now() - start) * 1000 / DECISIONS / 2;
}

if (import.meta.main) {
  const cases: [string, Scene, number][] = [
    ["the plan alone", sceneOf(0, 0, QUOTA), 1],
    ["1 balance pays", sceneOf(1, 0, 0), 1],
    ["1 of 1,000 balances pays", sceneOf(1_000, 0, 0), 1],
    ["1 that stands behind 999 others pays", sceneOf(1, 999, 0), 1],
    ["10 of 1,000 balances pay", sceneOf(1_000, 0, 0), 9.5e6],
    ["the plan pays, 1,000 balances stand by", sceneOf(1_000, 0, QUOTA), 1],
    ["3 quotas", limitedBy(QUOTAS), 1],
    ["5 groups, 2 of them guards", limitedBy([...QUOTAS, ...GUARDS]), 1],
  ];
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    for (const [, scene, count] of cases) microsPerDecision(scene, count);
  }
  // In turn, so that other work on the machine slows all of them.
  const took = cases.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [place, [, scene, count]] of cases.entries()) {
      (took[place] as number[]).push(microsPerDecision(scene, count));
    }
  }
  for (const [place, [name]] of cases.entries()) {
    const best = Math.min(...took[place] as number[]);
    console.log(`${name.padEnd(42)} ${best.toFixed(2).padStart(8)} µs`);
  }
  const [quotas, guarded] = took.slice(-2) as [number[], number[]];
  const ratios = guarded.map((micros, round) => micros / (quotas[round] as number)).sort((a, b) => a - b);
  const median = ratios[ratios.length >> 1] as number;
  console.log(`\n5 groups beside 3 quotas, median of the rounds: ${median.toFixed(2)}`);
}
