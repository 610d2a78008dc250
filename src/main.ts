// The composition root: reads the settings, opens the store, starts the service, answers HTTP, and ends in good
// order on a signal. Imports everything and is imported by nothing.

import { makeApp, type SurfacePart } from "../routes/app.ts";
import type { ConsoleOptions } from "../routes/console/console.tsx";
import { withStrictTransport } from "../routes/http/strict_transport.ts";
import { registerSweeps } from "./operations/sweeps/cron.ts";
import { openSpans, type Spans } from "./process/counts/spans.ts";
import { systemClock } from "./process/clock.ts";
import type { Features } from "./process/features.ts";
import { makeIdSource } from "./process/id_source.ts";
import { checkAddress, listen, type ListenAddress } from "./process/listener.ts";
import { log, setLogLevel, setLogTrace } from "./process/log.ts";
import type { OperatorToken } from "./process/operators.ts";
import {
  type Config,
  ConfigError,
  isLoopback,
  readConfig,
  refuseSharedTokens,
  refuseUnknown,
} from "./process/settings.ts";
import { serversOf } from "./process/server_address.ts";
import { stopOnSignal } from "./process/stop.ts";
import { readSecret } from "./process/secrets/data_folder.ts";
import { openNetwork } from "./cluster/cluster_address.ts";
import { Service } from "./cluster/service.ts";
import { openStore } from "./cluster/store.ts";
import { FolderError } from "./storage/embedded/folder_lock.ts";
import { MigrationError } from "./storage/migrate.ts";
import { adminTokenOf } from "./tenant/admin_token.ts";
import { greet, type PreparedDemo, prepareDemo } from "./tenant/demo/greeting.ts";

const PRIVACY_SECRET_FILE = "privacy-secret";

async function main(): Promise<void> {
  const variables = Deno.env.toObject();
  refuseUnknown(variables);
  const config = readConfig(variables);
  setLogLevel(config.logLevel);
  const spans = startTracing(config);
  const addresses = addressesOf(config);
  for (const address of Object.values(addresses)) checkAddress(address);
  const { database } = await openStore(config);
  const clock = systemClock();
  const adminToken = await adminTokenOf(config);
  let demo: PreparedDemo = null;
  const service = new Service(database, makeIdSource(clock), clock, await featuresOf(config), {
    spans,
    network: await openNetwork(config, database),
    share: config.isFront ? 0 : 1,
    adminToken,
    prepare: async (serving) => {
      demo = await prepareDemo(config, serving);
    },
  });
  const console = consoleOf(config, adminToken);
  const handlerOf = (part: SurfacePart) =>
    withStrictTransport(makeApp(service, adminToken, console, part).fetch, config.features.publicUrl);
  const served = service.start().catch(fail);
  // The system deals connections to all who listen on a shared port: a process that cannot answer yet stays away.
  if (config.sharesPort) await Promise.race([service.ready(), served]);
  const { admin } = addresses;
  const listener = listen(addresses.main, handlerOf(admin === undefined ? "all" : "public"));
  const inner = admin === undefined ? null : listen(admin, handlerOf("admin"));
  registerSweeps(service);
  stopOnSignal(service, inner === null ? [listener] : [listener, inner], database);
  await greet(service, config, { port: listener.port, adminPort: inner?.port ?? null }, () => demo);
  dropWriting(config);
}

/**
 * Gives up the permission to write to the disk, for the threads too, which share it: on a server nothing needs it but the
 * socket of a server on this machine.
 */
function dropWriting({ databaseUrl }: Config): void {
  if (databaseUrl !== null && serversOf(databaseUrl).servers.every(({ folder }) => folder === null)) {
    Deno.permissions.revokeSync({ name: "write" });
  }
}

/** The address of everything, and the one of admin API, console and metrics, where they have one. */
function addressesOf(
  { host, port, sharesPort, adminListen }: Config,
): { readonly main: ListenAddress; readonly admin?: ListenAddress } {
  const main = { host, port, sharesPort };
  return adminListen === null
    ? { main }
    : { main, admin: { ...adminListen, sharesPort, setting: "HOLDFAST_ADMIN_LISTEN" } };
}

/**
 * How the console is served; null for none.
 *
 * @param adminToken that of the settings, or of the data folder
 */
function consoleOf(config: Config, adminToken: string | null): ConsoleOptions | null {
  const { console, features, host, adminListen } = config;
  const { isOn, supportSeesPrompts } = console;
  refuseSharedTokens(console.operators, adminToken);
  const admin: OperatorToken[] = adminToken === null
    ? []
    : [{ name: "admin", role: "admin", token: adminToken }];
  const operators = [...admin, ...console.operators];
  if (!isOn) return null;
  if (operators.length === 0) {
    log("info", "There is no console: no token is set for it. HOLDFAST_ADMIN_TOKEN gives one");
    return null;
  }
  if (features.publicUrl === null && !isLoopback(adminListen?.host ?? host)) {
    log("warn", "HOLDFAST_PUBLIC_URL is unset: browsers send the console's cookies over plain http too");
  }
  const isSecure = features.publicUrl?.startsWith("https:") === true;
  return { operators, isSecure, supportSeesPrompts };
}

function startTracing({ exportsDenoMetrics }: Config): Spans | null {
  const spans = openSpans();
  if (spans === null) return null;
  setLogTrace(() => spans.traceId());
  if (exportsDenoMetrics) {
    log("warn", "Deno's own metrics can keep a stopping process from ending: set OTEL_DENO_METRICS=false");
  }
  return spans;
}

/** The embedded store keeps a privacy secret of its own, beside the database and not in it. */
async function featuresOf({ databaseUrl, dataDir, features }: Config): Promise<Features> {
  if (databaseUrl !== null || features.privacySecret !== null) return features;
  return { ...features, privacySecret: await readSecret(dataDir, PRIVACY_SECRET_FILE) };
}

/** Ends a process that cannot start; the message is the one line that the operator sees. */
function fail(error: unknown): never {
  const isExpected = error instanceof ConfigError || error instanceof FolderError ||
    error instanceof MigrationError;
  if (!isExpected) throw error;
  console.error(error.message);
  Deno.exit(1);
}

await main().catch(fail);
