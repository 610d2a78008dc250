// `deno task admin doctor`: checks that everything works and says what to do where it does not. It asks the running
// service, which examines itself. Where no service answers, or none accepts the admin token, it looks at the store of
// the settings. It changes nothing. Exit status: 0 nothing is broken (there may be warnings), 1 something is.

import type { Command } from "commander";
import { examine } from "../../routes/contract/service.ts";
import { type Config, ConfigError, readConfig } from "../process/settings.ts";
import {
  type Check,
  checkFeatures,
  checkStore,
  fail,
  ok,
  type Verdict,
  warn,
  worstOf,
} from "../operations/doctor/checks.ts";
import { storeFacts } from "../operations/doctor/facts.ts";
import { messageOf } from "../process/log.ts";
import { openUnmigrated } from "../cluster/store.ts";
import { openAdminClient, ServiceRefusal } from "./admin_client.ts";
import { EXIT, serviceUrl, type Shell, TaskError, withExample } from "./shell.ts";
import { safeText } from "./table.ts";
import type { Database } from "../storage/database.ts";
import { serverOf } from "../storage/postgres_database.ts";
import { isFolderInUse } from "../storage/embedded/folder_lock.ts";

const ASK_TIMEOUT_MS = 10_000;

/** Adds the command. */
export function addDoctorCommand(program: Command, shell: Shell): void {
  const command = program.command("doctor")
    .description(
      "Look at settings, service, database, migrations, members, clock, backlog, drift and prices, each with a verdict\n" +
        "and what to do. Works without a running service, too: DATABASE_URL, else the store in HOLDFAST_DATA_DIR.",
    )
    .action(async () => {
      const { url, json } = program.opts<{ url?: string; json?: boolean }>();
      const checks = await look(url, shell);
      const verdict = worstOf(checks);
      shell.print(json === true ? JSON.stringify({ verdict, checks }, null, 2) : report(checks, verdict));
      if (verdict === "fail") throw new TaskError("", EXIT.refused);
    })
    .addHelpText("after", "\nExit status: 0 nothing is broken, 1 something is, 2 wrong usage.");
  withExample(command, "deno task admin doctor", "deno task admin doctor --url http://127.0.0.1:8000 --json");
}

async function look(url: string | undefined, shell: Shell): Promise<Check[]> {
  let config: Config;
  try {
    config = readConfig(shell.variables);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const found = error.message.replace(/^Cannot start: /, "");
    return [fail("settings", found, "Correct it; nothing else can be looked at before")];
  }
  const settings = checkSettings(config);
  const { service, checks } = await askService(url, shell);
  return [settings, service, ...checks ?? await lookAtStore(config)];
}

function checkSettings({ databaseUrl, dataDir, adminToken, features }: Config): Check {
  const store = databaseUrl === null
    ? `the embedded store in "${dataDir}"`
    : `the server ${serverOf(databaseUrl).folder ?? new URL(databaseUrl).host}`;
  const found = `readable; the store is ${store}`;
  if (databaseUrl !== null && adminToken === null) {
    return warn(
      "settings",
      `${found}; the admin API is off`,
      "Set HOLDFAST_ADMIN_TOKEN to at least 16 characters",
    );
  }
  if (features.publicUrl?.startsWith("http:") === true) {
    const advice = "Serve it over https: keys travel with every call";
    return warn("settings", `${found}; HOLDFAST_PUBLIC_URL is plain http`, advice);
  }
  return ok("settings", found);
}

/** What the service says: whether it serves, and its own examination where it gave one. */
async function askService(
  url: string | undefined,
  shell: Shell,
): Promise<{ service: Check; checks: readonly Check[] | null }> {
  const base = serviceUrl(url, shell);
  const readiness = await readinessOf(base);
  if (readiness !== "serving") return { service: checkReadiness(base, readiness), checks: null };
  try {
    const client = await openAdminClient(url, shell);
    const { checks } = await client.call(examine);
    return { service: ok("service", `serves at ${base}`), checks };
  } catch (error) {
    if (!(error instanceof TaskError)) throw error;
    const isAway = error instanceof ServiceRefusal && error.error.code === "unavailable";
    const advice = isAway
      ? "Ask again soon; if it stays so, look at its log"
      : "Give HOLDFAST_ADMIN_TOKEN as the service has it: it then examines itself";
    return { service: warn("service", `serves at ${base}, but: ${error.message}`, advice), checks: null };
  }
}

/** The state that `/readyz` gives, or null where no Holdfast answers. */
async function readinessOf(base: string): Promise<string | null> {
  try {
    const response = await fetch(`${base}/readyz`, { signal: AbortSignal.timeout(ASK_TIMEOUT_MS) });
    const body = await response.json();
    const state = body?.ok === true ? body.data?.status : body?.error?.details?.status;
    return typeof state === "string" ? state : null;
  } catch {
    return null;
  }
}

function checkReadiness(base: string, state: string | null): Check {
  if (state === null) {
    const advice =
      "Start it, or give --url (PORT and HOLDFAST_HOST are the default); its log says why it ended";
    return fail("service", `nothing answers at ${base}`, advice);
  }
  if (state === "standby") {
    return ok("service", `waits at ${base} until processes of another version have ended`);
  }
  return warn(
    "service",
    `is ${safeText(state)} at ${base}`,
    "Ask again soon; if it stays so, look at its log",
  );
}

/** Looks at the store without a service. */
async function lookAtStore(config: Config): Promise<Check[]> {
  const { databaseUrl, dataDir, features } = config;
  // The embedded store keeps a privacy secret of its own.
  const privacySecret = databaseUrl === null ? "kept in the folder" : features.privacySecret;
  const last = checkFeatures({ ...features, privacySecret });
  let database: Database | null = null;
  try {
    if (databaseUrl === null && await isFolderInUse(dataDir)) {
      const found = `a process uses the data folder "${dataDir}", so only that one can look into it`;
      return [warn("database", found, "Give --url of that process, and its admin token"), last];
    }
    database = await openUnmigrated(config);
    return [...checkStore(await storeFacts(database, Date.now), null), last];
  } catch (error) {
    const found = messageOf(error).replace(/^Cannot start: /, "");
    return [fail("database", found, adviceFor(databaseUrl)), last];
  } finally {
    // The findings are printed even if the database does not close.
    await database?.close().catch(() => {});
  }
}

function adviceFor(databaseUrl: string | null): string {
  if (databaseUrl === null) {
    return "Start the service, which makes its store; or name the right HOLDFAST_DATA_DIR";
  }
  return "Check that the server runs, that it can be reached from here, and the user and password of DATABASE_URL";
}

/** Aligned lines for people, each piece of advice below its finding. */
function report(checks: readonly Check[], verdict: Verdict): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, verdict, found, advice }) => {
    const line = `${verdict.padEnd(4)}  ${name.padEnd(width)}  ${safeText(found)}`;
    return advice === null ? [line] : [line, `${" ".repeat(width + 8)}-> ${safeText(advice)}`];
  });
  const ends = { ok: "All is well.", warn: "It works; look at the warnings.", fail: "Something is broken." };
  return [...lines, ends[verdict]].join("\n");
}
