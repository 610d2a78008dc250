// The composition root: reads the settings, opens the store, starts the service, answers HTTP, and ends in good
// order on a signal. Imports everything and is imported by nothing.

import { makeApp } from "../routes/app.ts";
import { withStrictTransport } from "../routes/strict_transport.ts";
import { systemClock } from "./process/clock.ts";
import { type Config, ConfigError, readConfig, SETTING_NAMES } from "./process/settings.ts";
import { registerSweeps } from "./housekeeping/cron.ts";
import { demoText, makeDemo } from "./tenant/demo/demo.ts";
import { isKept, keepSecret, readSecret } from "./secrets/data_folder.ts";
import type { Features } from "./process/features.ts";
import { makeIdSource } from "./process/id_source.ts";
import { PROCESS_LIMITS } from "./process/limits.ts";
import { linger } from "./process/linger.ts";
import { Listener } from "./process/listener.ts";
import { log, messageOf, setLogLevel, setLogTrace } from "./process/log.ts";
import { openSpans } from "./observability/spans.ts";
import { Service } from "./service/service.ts";
import { openStore } from "./service/store.ts";
import { FolderError } from "./storage/embedded/folder_lock.ts";
import { MigrationError } from "./storage/migrate.ts";

const DEMO_FILE = "demo.json";
const ADMIN_TOKEN_FILE = "admin-token";
const PRIVACY_SECRET_FILE = "privacy-secret";
/** How long a stopping process goes on answering new calls with 503. */
const LINGER_MS = 1_000;
/** How long the writer then waits for calls in flight before it ends them with 503. */
const CALLS_MS = 4_000;

async function main(): Promise<void> {
  const config = readConfig(Object.fromEntries(SETTING_NAMES.map((name) => [name, Deno.env.get(name)])));
  setLogLevel(config.logLevel);
  const spans = openSpans();
  if (spans !== null) {
    setLogTrace(() => spans.traceId());
    if (config.exportsDenoMetrics) {
      log("warn", "Deno's own metrics can keep a stopping process from its end: set OTEL_DENO_METRICS=false");
    }
  }
  checkAddress(config);
  const { database } = await openStore(config);
  const clock = systemClock();
  const service = new Service(database, makeIdSource(clock), clock, await featuresOf(config), spans);
  const adminToken = config.adminToken ?? await embeddedAdminToken(config);
  const listener = listen(
    config,
    withStrictTransport(makeApp(service, adminToken).fetch, config.features.publicUrl),
  );
  void service.start();
  registerSweeps(service);
  stopOnSignal(service, listener, database);
  const origin = `http://${config.host}:${listener.port}`;
  if (config.databaseUrl === null) await greet(service, config, origin);
  else console.log(`Holdfast listens on ${origin}`);
}

/** An address that cannot be had is told before a store is made, which takes seconds. */
function checkAddress({ port, host: hostname }: Config): void {
  onAddress(() => Deno.listen({ hostname, port }).close());
}

function listen({ port, host }: Config, handler: Deno.ServeHandler): Listener {
  return onAddress(() => new Listener(host, port, handler));
}

/** A port or host that cannot be had is a bad setting. */
function onAddress<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const name = error instanceof Deno.errors.AddrInUse || error instanceof Deno.errors.PermissionDenied
      ? "PORT"
      : "HOLDFAST_HOST";
    throw new ConfigError(`Cannot start: ${name}: ${messageOf(error)}`);
  }
}

/** The embedded store keeps an admin token of its own; with a server the admin API is off without a setting. */
async function embeddedAdminToken(config: Config): Promise<string | null> {
  if (config.databaseUrl !== null) return null;
  return await readSecret(config.dataDir, ADMIN_TOKEN_FILE);
}

/** The embedded store keeps a privacy secret of its own, beside the database and not in it. */
async function featuresOf({ databaseUrl, dataDir, features }: Config): Promise<Features> {
  if (databaseUrl !== null || features.privacySecret !== null) return features;
  return { ...features, privacySecret: await readSecret(dataDir, PRIVACY_SECRET_FILE) };
}

/** Tells a newcomer what to do next; the demo is made on the first start. */
async function greet(service: Service, config: Config, origin: string): Promise<void> {
  const serving = await service.ready().catch(() => null);
  if (serving === null) return;
  const isShown = await isKept(config.dataDir, DEMO_FILE);
  const demo = isShown ? null : await makeDemo(serving);
  if (demo !== null) {
    await keepSecret(config.dataDir, DEMO_FILE, JSON.stringify(demo, null, 2));
    // Not by the console: with tracing on, that would send the keys to whoever collects logs.
    Deno.stdout.writeSync(new TextEncoder().encode(`${demoText(demo, origin)}\n`));
  } else if (isShown) {
    console.log(`The keys of the demo app are in ${config.dataDir}/${DEMO_FILE}`);
  }
  console.log(`The admin token is in ${config.dataDir}/${ADMIN_TOKEN_FILE}`);
  console.log(`Holdfast listens on ${origin}`);
}

/** Calls in flight end with their answers; what was decided is made durable and drained. */
function stopOnSignal(service: Service, listener: Listener, database: { close(): Promise<void> }): void {
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    log("info", "Stopping");
    service.refuseCalls();
    const grace = new Promise((resolve) => setTimeout(resolve, PROCESS_LIMITS.stopGraceMs));
    // A shutdown closes idle connections at once, with whatever call is on its way on them. So the port stays open
    // for a moment in which such calls get their 503.
    await linger(LINGER_MS);
    const shutdown = listener.shutdown();
    // The term ends after the last call, so that its drain is the last one; a call that hangs must not hold it up.
    await Promise.race([shutdown, new Promise((resolve) => setTimeout(resolve, CALLS_MS))]);
    await Promise.race([Promise.all([shutdown, service.stop()]), grace]);
    await Promise.race([database.close(), grace]);
    Deno.exit(0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => void stop());
}

try {
  await main();
} catch (error) {
  const isExpected = error instanceof ConfigError || error instanceof FolderError ||
    error instanceof MigrationError;
  if (!isExpected) throw error;
  console.error(error.message);
  Deno.exit(1);
}
