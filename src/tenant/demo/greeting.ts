// The demo app of a first start, and what a start prints: the address once calls are answered, and on a store without an
// app the next steps. On the embedded store the demo app is created; on a server nothing is created by itself.

import type { Config } from "../../process/settings.ts";
import { isKept, keepSecret } from "../../process/secrets/data_folder.ts";
import { ADMIN_TOKEN_FILE } from "../admin_token.ts";
import { log, messageOf } from "../../process/log.ts";
import { type Demo, demoText, type DemoWorld, makeDemo } from "./demo.ts";

/** The service that was started: it resolves once it serves. */
interface Started {
  ready(): Promise<DemoWorld>;
}

const DEMO_FILE = "demo.json";
const PORT_DEFAULT = 8000;

/** A demo app that was created by this start, or is kept by an earlier one; null if there is none. */
export type PreparedDemo = Demo | "kept" | null;

/**
 * Creates the demo app of an empty embedded store. This comes before the process answers calls: a program that creates a
 * workspace as soon as it can would otherwise leave no demo, depending on who is faster.
 */
export async function prepareDemo({ databases, dataDir }: Config, world: DemoWorld): Promise<PreparedDemo> {
  if (databases.length > 0) return null;
  if (await isKept(dataDir, DEMO_FILE)) return "kept";
  try {
    const demo = await makeDemo(world);
    if (demo !== null) await keepSecret(dataDir, DEMO_FILE, JSON.stringify(demo, null, 2));
    return demo;
  } catch (error) {
    log("error", "The demo app could not be created; the next start tries again", {
      error: messageOf(error),
    });
    return null;
  }
}

/** The ports that the service listens on; `adminPort` is null where the admin API has no address of its own. */
interface Ports {
  readonly port: number;
  readonly adminPort: number | null;
}

/**
 * Prints the lines of the store that the service runs on.
 *
 * @param demoOf returns the demo once the process serves
 */
export async function greet(
  service: Started,
  config: Config,
  { port, adminPort }: Ports,
  demoOf: () => PreparedDemo,
): Promise<void> {
  const origin = originOf(config.host, port);
  const { adminListen } = config;
  const adminOrigin = adminListen === null
    ? origin
    : originOf(adminListen.host, adminPort ?? adminListen.port);
  if (adminOrigin !== origin) {
    console.log(`Admin API, console and metrics listen on ${adminOrigin}`);
  }
  if (config.databases.length === 0) await greetEmbedded(service, config, origin, demoOf);
  else await greetServer(service, config, origin, adminOrigin);
}

function originOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

async function greetEmbedded(
  service: Started,
  { dataDir, adminToken }: Config,
  origin: string,
  demoOf: () => PreparedDemo,
): Promise<void> {
  const serving = await service.ready().catch(() => null);
  if (serving === null) return;
  const demo = demoOf();
  if (demo === "kept") console.log(`The keys of the demo app are in ${dataDir}/${DEMO_FILE}`);
  else if (demo !== null) {
    // Not by `console`: with tracing on, that would send the keys to the log collector.
    Deno.stdout.writeSync(new TextEncoder().encode(`${demoText(demo, origin)}\n`));
  }
  // A token of the settings is in no file.
  if (adminToken === null) console.log(`The admin token is in ${dataDir}/${ADMIN_TOKEN_FILE}`);
  console.log(`Holdfast listens on ${origin}`);
}

/** Prints that it starts, and the address when calls are answered. */
async function greetServer(
  service: Started,
  { adminToken }: Config,
  origin: string,
  adminOrigin: string,
): Promise<void> {
  console.log(`Holdfast starts; ${origin}/readyz reports when it answers calls`);
  if (adminToken === null) console.log(NO_TOKEN);
  const serving = await service.ready().catch(() => null);
  if (serving === null) return;
  console.log(`Holdfast listens on ${origin}`);
  if (serving.registry.workspaces.size > 0) return;
  console.log(firstAppText(adminOrigin, adminToken !== null));
}

const NO_TOKEN =
  "The admin API is off: HOLDFAST_ADMIN_TOKEN is not set. Set it to a secret of at least 16 characters and start again";

/** Commands that work when pasted into a shell with the admin token. */
function firstAppText(origin: string, hasToken: boolean): string {
  const url = origin.endsWith(`:${PORT_DEFAULT}`) ? "" : ` --url ${origin}`;
  const token = hasToken
    ? []
    : ['  export HOLDFAST_ADMIN_TOKEN="$(openssl rand -hex 24)"   # then start again'];
  return [
    "This database has no app yet. Create the first one, in a shell with the same HOLDFAST_ADMIN_TOKEN:",
    ...token,
    ...isCheckout()
      ? [
        `  deno task admin apps create shop${url}`,
        `  deno task admin catalog apply src/tenant/demo/catalog.json${url}`,
      ]
      : [
        `  curl -s ${origin}/api/admin/v1/apps -H "Authorization: Bearer $HOLDFAST_ADMIN_TOKEN" -d '{"name":"shop"}'`,
      ],
  ].join("\n");
}

/** Whether the tasks of a checkout exist: a compiled binary and an installed package have none. */
function isCheckout(): boolean {
  return !Deno.build.standalone && !import.meta.url.includes("/node_modules/");
}
