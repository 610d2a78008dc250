// `deno task admin doctor`: checks an installation, and gives advice for each problem. The running service examines
// itself. If no service answers or accepts the admin token, the task examines the store of the settings. It changes no
// data. Exit status: 0 passed, perhaps with warnings, 1 a check failed, 2 wrong usage.

import type { Command } from "commander";
import { examine } from "../../routes/contract/service.ts";
import { type Config, ConfigError, readConfig } from "../process/settings.ts";
import {
  type Check,
  checkFeatures,
  checkGateway,
  checkStore,
  fail,
  ok,
  type Verdict,
  warn,
  worstOf,
} from "../operations/doctor/checks.ts";
import { joinExaminations } from "../operations/doctor/examine.ts";
import { storeFacts } from "../operations/doctor/facts.ts";
import { messageOf } from "../process/log.ts";
import { openUnmigrated, placesOf, type StorePlace } from "../cluster/store.ts";
import { openAdminClient, ServiceRefusal } from "./admin_client.ts";
import { adminUrl, EXIT, type Shell, TaskError, withExample } from "./shell.ts";
import { safeText } from "./table.ts";
import type { Database } from "../storage/database.ts";
import { serversOf } from "../process/server_address.ts";
import { isFolderInUse } from "../storage/embedded/folder_lock.ts";

const ASK_TIMEOUT_MS = 10_000;

/** Adds the command. */
export function addDoctorCommand(program: Command, shell: Shell): void {
  const command = program.command("doctor")
    .description(
      "Check settings, service, database, migrations, processes, clock, backlog, drift, prices, webhooks, Stripe, top-ups " +
        "and gateway, with advice.\nAlso works without a running service, on DATABASE_URL, HOLDFAST_DATABASES or the store in HOLDFAST_DATA_DIR.",
    )
    .action(async () => {
      const { url, json } = program.opts<{ url?: string; json?: boolean }>();
      const checks = await examineAll(url, shell);
      const verdict = worstOf(checks);
      shell.print(json === true ? JSON.stringify({ verdict, checks }, null, 2) : report(checks, verdict));
      if (verdict === "fail") throw new TaskError("", EXIT.refused);
    })
    .addHelpText("after", "\nExit status: 0 passed, 1 a check failed, 2 wrong usage.");
  withExample(command, "deno task admin doctor", "deno task admin doctor --url http://127.0.0.1:8000 --json");
}

async function examineAll(url: string | undefined, shell: Shell): Promise<Check[]> {
  let config: Config;
  try {
    config = readConfig(shell.variables);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const found = error.message.replace(/^Cannot start: /, "");
    return [fail("settings", found, "Correct it; the other checks need valid settings")];
  }
  const settings = checkSettings(config);
  const { service, checks } = await askService(url, shell);
  return [settings, service, ...checks ?? await examineStores(config)];
}

function checkSettings({ databases, dataDir, adminToken, features }: Config): Check {
  const servers = databases.map(({ name, url }) => {
    const server = `the server ${serversOf(url).servers.map(({ name }) => name).join(" or ")}`;
    return name === null ? server : `${server} (${name})`;
  });
  const store = databases.length === 0 ? `the embedded store in "${dataDir}"` : servers.join(" and ");
  const found = `readable; the store is ${store}`;
  if (databases.length > 0 && adminToken === null) {
    return warn(
      "settings",
      `${found}; the admin API is off`,
      "Set HOLDFAST_ADMIN_TOKEN to at least 16 characters",
    );
  }
  if (features.publicUrl?.startsWith("http:") === true) {
    const advice = "Serve it over https: every call carries a key";
    return warn("settings", `${found}; HOLDFAST_PUBLIC_URL is plain http`, advice);
  }
  return ok("settings", found);
}

/** Whether the service serves, and its own examination if it gave one. */
async function askService(
  url: string | undefined,
  shell: Shell,
): Promise<{ service: Check; checks: readonly Check[] | null }> {
  const base = adminUrl(url, shell);
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
      ? "Ask again soon; if nothing changes, read its log"
      : "Set HOLDFAST_ADMIN_TOKEN to that of the service; it then examines itself";
    return { service: warn("service", `serves at ${base}, but: ${error.message}`, advice), checks: null };
  }
}

/** The state from `/readyz`, or null if no Holdfast answers. */
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
      "Start it, or give --url (the default is from HOLDFAST_ADMIN_LISTEN, else PORT and HOLDFAST_HOST); if it ended, its log has the reason";
    return fail("service", `no answer at ${base}`, advice);
  }
  if (state === "standby") {
    return ok("service", `waits at ${base} until processes of another version have ended`);
  }
  return warn(
    "service",
    `is ${safeText(state)} at ${base}`,
    "Ask again soon; if nothing changes, read its log",
  );
}

/** Examines every store without a service. */
async function examineStores(config: Config): Promise<readonly Check[]> {
  const places = placesOf(config);
  const [only, ...others] = await Promise.all(
    places.map(async (place) => ({
      name: place.database?.name ?? "",
      checks: await examineStore(place, config),
    })),
  );
  return only === undefined || others.length === 0
    ? only?.checks ?? []
    : joinExaminations([only, ...others]).checks;
}

async function examineStore(place: StorePlace, { features }: Pick<Config, "features">): Promise<Check[]> {
  const { database: server, dataDir } = place;
  // The embedded store has its own privacy secret.
  const privacySecret = server === null ? "kept in the folder" : features.privacySecret;
  const last = checkFeatures({ ...features, privacySecret });
  let database: Database | null = null;
  try {
    if (server === null && await isFolderInUse(dataDir)) {
      const found = `the data folder "${dataDir}" is in use by a process, so only that process can read it`;
      return [warn("database", found, "Give the --url and the admin token of that process"), last];
    }
    database = await openUnmigrated(place);
    const facts = await storeFacts(database, Date.now);
    return [...checkStore(facts, null), checkGateway(features, facts), last];
  } catch (error) {
    const found = messageOf(error).replace(/^Cannot start: /, "");
    return [fail("database", found, adviceFor(server !== null)), last];
  } finally {
    // The findings are printed even if closing the database fails.
    await database?.close().catch(() => {});
  }
}

function adviceFor(isServer: boolean): string {
  if (!isServer) {
    return "Start the service, which creates its store, or correct HOLDFAST_DATA_DIR";
  }
  return "Check that the server runs and is reachable from here, and the user and password of DATABASE_URL";
}

/** Aligned lines for people, with advice below its finding. */
function report(checks: readonly Check[], verdict: Verdict): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, verdict, found, advice }) => {
    const line = `${verdict.padEnd(4)}  ${name.padEnd(width)}  ${safeText(found)}`;
    return advice === null ? [line] : [line, `${" ".repeat(width + 8)}-> ${safeText(advice)}`];
  });
  const ends = { ok: "All is well.", warn: "Passed with warnings.", fail: "Something is broken." };
  return [...lines, ends[verdict]].join("\n");
}
