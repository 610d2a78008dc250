// Runs the tests: starts `deno test` on modules that are made here; each loads several test files into one worker.
// Loading the service and starting a store take a second of processor time, which such files share.
//
// Arguments: `--long` adds the `_long_test.ts` files in place of the others, and where searches go far those that search;
// `--stored` adds the files that can open a store; files or folders below tests/ leave out all others; the rest is passed
// on to deno.

import { importGraph, sourceFiles } from "../structure/sources.ts";
import { isDeep } from "./depth.ts";

/**
 * Files in one worker. Each more worker takes seconds of processor time; with fewer of them the last one would keep one core
 * busy while the other has no work, the more so on a server, where workers start no store.
 */
const FILES_MAX = 40;
const STORED_FILES_MAX = 16;

/**
 * Files that take longest, the longest first: they begin before all others, each in a worker of its own. Those that wait
 * for leases and starts of processes use a third of a core, so files that compute come between them.
 */
const SLOW = [
  "tests/simulation/simulation_long_test.ts",
  "tests/attack/attack_long_test.ts",
  "tests/crash/rolling_long_test.ts",
  "tests/crash/campaign_long_test.ts",
  "tests/simulation/cluster_long_test.ts",
  "tests/crash/takeover_long_test.ts",
  "tests/actors/model_long_test.ts",
  "tests/crash/connections_long_test.ts",
  "tests/stores/split_long_test.ts",
  "tests/domain/model_long_test.ts",
  "tests/stores/program_long_test.ts",
  "tests/crash/crash_test.ts",
  "tests/crash/settings_test.ts",
  "tests/crash/gateway_kill_test.ts",
  "tests/simulation/simulation_test.ts",
  "tests/domain/model_test.ts",
  "tests/actors/model_test.ts",
  "tests/readme_test.ts",
];

/** Folders whose files take least: they come last, to fill both cores to the end. */
const QUICK = ["actors", "channel", "cluster", "domain", "model", "process", "tenant"];

/**
 * What proves the same on any store: programs that use the API, answers that depend on no row, what the gateway does with
 * bodies (what it writes is in `gateway_test.ts`, on either store), and streams of what actors hold in memory (they change
 * nodes on a server in `nodes/streams_test.ts`).
 */
const STORELESS = [
  "tests/bench/",
  "tests/browser/",
  "tests/client/",
  "tests/crash/admin_listen_test.ts",
  "tests/mcp/",
  "tests/model/",
  ...["compile", "container", "kubernetes"].map((what) => `tests/operations/${what}_test.ts`),
  ...[
    "access_test.ts",
    "bad_",
    "body_limits_test.ts",
    "compose_answers_test.ts",
    "compose_deadline_test.ts",
    "compose_template_test.ts",
    "console_",
    "contract_types_test.ts",
    "cors_test.ts",
    "features_test.ts",
    "fit_test.ts",
    ...["answers", "anthropic", "bodies", "failures", "fit", "images", "refusals"].map((what) =>
      `gateway_${what}_test.ts`
    ),
    "home_test.ts",
    "known_paths_test.ts",
    "paths_test.ts",
    "plain_input_test.ts",
    "reference/",
    "refusal_form_test.ts",
    "unknown_members_test.ts",
    "usage_shapes_test.ts",
    "usage_stream_test.ts",
  ].map((name) => `tests/routes/${name}`),
];

/** What files of the long suite prove on a server too, and more of it. */
const SHORT_OF_LONG = [
  "tests/actors/model_test.ts",
  "tests/crash/crash_test.ts",
  "tests/simulation/reconcile_test.ts",
  "tests/top_ups/lives_test.ts",
  "tests/webhooks/order_test.ts",
];

const isPath = (arg: string) => /^(\.\/)?tests(\/|$)/.test(arg);
const KINDS = ["--long", "--stored"];
const kinds = Deno.args.filter((arg) => KINDS.includes(arg));
const asked = Deno.args.filter(isPath).map((arg) => arg.replace(/^\.\/|\/$/g, ""));
const options = Deno.args.filter((arg) => !isPath(arg) && !KINDS.includes(arg));

const folderOf = (file: string) => file.split("/")[1] ?? "";
const isLong = (file: string) => file.endsWith("_long_test.ts");

/** The test files that are asked for. */
async function chosen(): Promise<string[]> {
  const added = new Set([
    ...kinds.includes("--stored") ? await storedFiles() : [],
    ...isDeep ? await filesOn("tests/support/depth.ts") : [],
  ]);
  const files = (await sourceFiles("tests")).filter((file) => /[_./]test\.tsx?$/.test(file));
  return files.filter((file) =>
    (asked.length === 0 || asked.some((path) => `${file}/`.startsWith(`${path}/`))) &&
    (isLong(file) ? kinds.includes("--long") : added.has(file) || kinds.length === 0)
  );
}

/** The files that import what opens a store, except those that prove the same on any store. */
async function storedFiles(): Promise<string[]> {
  const leftOut = [...STORELESS, ...kinds.includes("--long") ? SHORT_OF_LONG : []];
  const files = [...await filesOn("tests/support/test_store.ts")];
  return files.filter((file) => !leftOut.some((path) => file.startsWith(path)));
}

/** The files that import a module, directly or not. */
async function filesOn(module: string): Promise<ReadonlySet<string>> {
  const graph = await importGraph();
  const found = new Set([module]);
  for (let known = 0; known !== found.size;) {
    known = found.size;
    for (const [file, imports] of graph) {
      if (imports.some(({ target }) => found.has(target))) found.add(file);
    }
  }
  return found;
}

/** The files of each worker, in the order in which they begin. */
function workersOf(files: readonly string[]): string[][] {
  const isAlone = (file: string) => isLong(file) || SLOW.includes(file);
  const workers = [
    ...SLOW.filter((file) => files.includes(file)),
    ...files.filter((file) => isLong(file) && !SLOW.includes(file)),
  ].map((file) => [file]);
  const isQuick = (file: string) => QUICK.includes(folderOf(file));
  const shared = files.filter((file) => !isAlone(file));
  const filesMax = kinds.includes("--stored") ? STORED_FILES_MAX : FILES_MAX;
  for (const members of [shared.filter((file) => !isQuick(file)), shared.filter(isQuick)]) {
    const size = Math.ceil(members.length / Math.ceil(members.length / filesMax));
    for (let at = 0; at < members.length; at += size) workers.push(members.slice(at, at + size));
  }
  return workers;
}

const COLORS = String.raw`(?:\s|\x1b\[[\d;]*m)*`;
const OF = String.raw`(tests/\S+) (tests/\S+:\d+:\d+) `;
const PREFIX = new RegExp(String.raw`\.[\w./-]*/worker_\d+\.ts =>(${COLORS})${OF}`);
const PLACE = new RegExp(String.raw`^${OF}(.*=> )\./tests/support/shared_worker\.ts:\d+:\d+`);
const ELSE = new RegExp(String.raw`^('?)${OF}`);
const WORKER = /\.[\w./-]*\/worker_(\d+)\.ts/;

/** What Deno would print if each file had its own worker; of a fault outside tests, the files that it can be of. */
function asFiles(line: string, workers: readonly string[][]): string {
  return line.replace(PREFIX, "./$2 =>$1").replace(PLACE, "$3./$2").replace(ELSE, "$1./$2 => ")
    .replace(WORKER, (path, at) => workers[at]?.join(" or ") ?? path);
}

async function print(output: ReadableStream<Uint8Array>, workers: readonly string[][]): Promise<void> {
  const encoder = new TextEncoder();
  let rest = "";
  for await (const text of output.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    const printed = lines.map((line) => `${asFiles(line, workers)}\n`).join("");
    for (let bytes = encoder.encode(printed); bytes.length > 0;) {
      bytes = bytes.subarray(await Deno.stdout.write(bytes));
    }
  }
}

// An interrupt ends the tests, and then this.
Deno.addSignalListener("SIGINT", () => {});
const files = await chosen();
const unknown = asked.filter((path) => !files.some((file) => `${file}/`.startsWith(`${path}/`)));
if (files.length === 0 || unknown.length > 0) throw new Error(`No test files to run: ${unknown.join(" ")}`);
const folder = await Deno.makeTempDir();
try {
  const shared = new URL("shared_worker.ts", import.meta.url).href;
  const workers = workersOf(files);
  const modules = workers.map((members, at) => {
    const module = `${folder}/worker_${at}.ts`;
    const text = `import { shareWorker } from "${shared}";\nawait shareWorker(${JSON.stringify(members)});\n`;
    Deno.writeTextFileSync(module, text);
    return module;
  });
  // One more at a time than there are cores: some tests wait for programs that they start.
  const process = new Deno.Command(Deno.execPath(), {
    args: [...options, ...modules],
    env: {
      DENO_JOBS: Deno.env.get("DENO_JOBS") ?? String(navigator.hardwareConcurrency + 1),
      ...Deno.stdout.isTerminal() && !Deno.noColor ? { FORCE_COLOR: "1" } : {},
    },
    stdout: "piped",
  }).spawn();
  await print(process.stdout, workers);
  Deno.exitCode = (await process.status).code;
} finally {
  await Deno.remove(folder, { recursive: true });
}
