// The composition root: reads the settings, opens the store, starts the service, answers HTTP, and ends in good
// order on a signal. Imports everything and is imported by nothing.

import { makeApp } from "../routes/app.ts";
import type { ConsoleOptions } from "../routes/console/console.tsx";
import { withStrictTransport } from "../routes/http/strict_transport.ts";
import { registerSweeps } from "./operations/sweeps/cron.ts";
import { openSpans, type Spans } from "./process/counts/spans.ts";
import { systemClock } from "./process/clock.ts";
import type { Features } from "./process/features.ts";
import { makeIdSource } from "./process/id_source.ts";
import { checkAddress, listen } from "./process/listener.ts";
import { log, setLogLevel, setLogTrace } from "./process/log.ts";
import type { OperatorToken } from "./process/operators.ts";
import {
  type Config,
  ConfigError,
  readConfig,
  refuseSharedTokens,
  refuseUnknown,
} from "./process/settings.ts";
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
  checkAddress(config);
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
  const app = makeApp(service, adminToken, consoleOf(config, adminToken));
  const handler = withStrictTransport(app.fetch, config.features.publicUrl);
  const served = service.start().catch(fail);
  // The system deals connections to all who listen on a shared port: a process that cannot answer yet stays away.
  if (config.sharesPort) await Promise.race([service.ready(), served]);
  const listener = listen(config, handler);
  registerSweeps(service);
  stopOnSignal(service, listener, database);
  await greet(service, config, listener.port, () => demo);
}

/**
 * How the console is served; null for none.
 *
 * @param adminToken that of the settings, or of the data folder
 */
function consoleOf({ console, features }: Config, adminToken: string | null): ConsoleOptions | null {
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
