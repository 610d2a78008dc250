// `deno task crash`: runs a campaign on each store and says what came of it. Progress goes to stderr, a line for each
// fault; the summary, or with --json one document, to stdout. Whatever it started ends with it, also on Ctrl-C.

import { type CampaignReport, runCampaign } from "./campaign.ts";
import { type Options, readOptions } from "./options.ts";

function progress(text: string): void {
  console.error(`crash: ${text}`);
}

async function main(options: Options): Promise<number> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      progress("stops after this round");
      stop.abort();
    });
  }
  const untilMs = performance.now() + options.minutes * 60_000;
  const reports: CampaignReport[] = [];
  for (const store of options.stores) {
    if (stop.signal.aborted) break;
    const { rounds: faults, kinds, seed, server, members, databases } = options;
    const size = members === undefined ? {} : { members };
    progress(`${store}: ${faults} faults, seed ${seed}`);
    reports.push(
      await runCampaign(
        { store, faults, kinds, seed, server, databases, ...size, untilMs, progress },
        stop.signal,
      ),
    );
  }
  if (options.isJson) console.log(JSON.stringify({ reports }, null, 2));
  else for (const report of reports) console.log(summaryOf(report));
  return reports.some(({ failure }) => failure !== null) ? 1 : 0;
}

function summaryOf(report: CampaignReport): string {
  const { store, seed, faults, rounds, worlds, missed, audits, seconds, outcomes, stormCalls, merges } =
    report;
  const calls = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const lines = [
    `${store}: ${faults} faults in ${rounds} rounds on ${worlds} stores, ${audits} audits, ${seconds} s, seed ${seed}`,
    `  ${calls} calls of the load: ${listOf(outcomes)}`,
    `  ${stormCalls} calls of the storm with ${merges} merges, each sent until it was answered`,
    ...Object.entries(report.byKind).map(([kind, count]) => {
      const longest = report.longestMs[kind];
      return `  ${kind.padEnd(12)} ${String(count).padStart(5)}` +
        (longest === undefined ? "" : `   back within ${longest} ms`);
    }),
  ];
  if (report.amidMoves > 0) {
    lines.push(`  In ${report.amidMoves} rounds cells were moving to another process meanwhile`);
  }
  if (missed > 0) lines.push(`  ${missed} rounds missed their moment and are not counted`);
  lines.push(report.failure === null ? "  Every answer stands." : storyOf(report.failure));
  return lines.join("\n");
}

function storyOf({ found, done, lastWords, kept }: NonNullable<CampaignReport["failure"]>): string {
  return [
    "  AN AUDIT FAILED:",
    ...found.map((text) => `    ${text}`),
    "  what had been done on this store, in order:",
    ...done.map((text) => `    ${text}`),
    "  last output of the processes:",
    lastWords,
    `  the store was kept: ${kept}`,
  ].join("\n");
}

function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts).map(([name, count]) => `${count} x ${name}`).join(", ");
}

if (import.meta.main) {
  try {
    const options = readOptions(Deno.args);
    Deno.exit(options === null ? 0 : await main(options));
  } catch (error) {
    console.error(`crash: ${error instanceof Error ? error.message : error}`);
    Deno.exit(2);
  }
}
