// Runs attacks one after another beside the steady calls of another tenant, each on a store of its own.

import { outputOf } from "../bench/processor_time.ts";
import { pause } from "../crash/program.ts";
import type { Attack } from "./tools.ts";
import { type AttackScene, openScene } from "./scene.ts";
import type { SteadyLoad, SteadyReport } from "./steady.ts";

/** Calls a second of the other tenant. */
const STEADY_RATE = 200;
/** How late the slowest hundredth of the other tenant's calls may be answered. */
const P99_MAX_MS = 250;
/** The calls that may be refused for a moment, where other tests run beside. */
const MOMENT_SHARE = 0.05;
/** How much memory the process may have in the worst moment. */
const RSS_MAX_MB = 1_024;

/** What an attack did to the other tenant and to the process. */
export interface AttackReport extends SteadyReport {
  readonly name: string;
  readonly rssMb: number;
  /** What the attacker achieved; null where nothing. */
  readonly breach: string | null;
}

/**
 * Runs one attack.
 *
 * @param rate calls a second of the other tenant
 * @param part how much of its data the attack prepares
 */
export async function runAttack(
  attack: Attack,
  seconds: number,
  { rate = STEADY_RATE, part = 1 } = {},
): Promise<AttackReport> {
  await using scene = await openScene(attack);
  await attack.prepare?.(scene, part);
  const steady = startSteady({ origin: scene.origin, secretKey: scene.victim.secretLive, rate });
  const stop = new AbortController();
  const memory = watchMemory(scene, stop.signal);
  const end = setTimeout(() => stop.abort(), seconds * 1000);
  try {
    await pause(500);
    const breach = await attack.run(scene, stop.signal);
    await new Promise<void>((resolve) => {
      if (stop.signal.aborted) resolve();
      else stop.signal.addEventListener("abort", () => resolve());
    });
    const report = await steady.end();
    return { name: attack.name, ...report, rssMb: await memory, breach };
  } finally {
    clearTimeout(end);
    stop.abort();
    steady.terminate();
  }
}

/**
 * What is wrong with a report. Where the machine runs other tests too, the p99 does not count, nor a few calls that
 * are refused for a moment because the process was kept from its lease.
 */
export function faultsOf(report: AttackReport, { isTimed }: { readonly isTimed: boolean }): string[] {
  const failures = Object.entries(report.failures);
  const isMoment = failures.every(([what]) => what.endsWith("503 unavailable")) &&
    failures.reduce((sum, [, times]) => sum + times, 0) <= MOMENT_SHARE * report.calls;
  const failed = !isTimed && isMoment ? [] : failures.map(([what, times]) => `${times} times ${what}`);
  return [
    ...failed.length > 0 ? [`calls of another tenant failed: ${failed.join(", ")}`] : [],
    ...isTimed && report.p99Ms > P99_MAX_MS ? [`p99 is ${report.p99Ms.toFixed(0)} ms`] : [],
    ...report.rssMb > RSS_MAX_MB ? [`the process took ${report.rssMb} MB`] : [],
    ...report.breach === null ? [] : [report.breach],
  ];
}

function startSteady(load: SteadyLoad) {
  const worker = new Worker(new URL("steady.ts", import.meta.url), { type: "module" });
  worker.postMessage(load);
  return {
    end: () =>
      new Promise<SteadyReport>((resolve) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.postMessage("end");
      }),
    terminate: () => worker.terminate(),
  };
}

/** The most memory that the process had, in MB, by looks twice a second. */
async function watchMemory(scene: AttackScene, signal: AbortSignal): Promise<number> {
  let most = 0;
  const pid = scene.stage.programs[0]?.pid;
  while (!signal.aborted) {
    const kib = Number((await outputOf("ps", ["-o", "rss=", "-p", String(pid)])).trim());
    most = Math.max(most, kib / 1024);
    await pause(500);
  }
  return Math.round(most);
}
