// What a start prints: the address once calls are answered, and on a store without an app the next steps. On the embedded
// store the demo app is created; on a server nothing is created by itself.

import type { Config } from "../../process/settings.ts";
import { isKept, keepSecret } from "../../process/secrets/data_folder.ts";
import { ADMIN_TOKEN_FILE } from "../admin_token.ts";
import { demoText, type DemoWorld, makeDemo } from "./demo.ts";

/** The service that was started: it resolves once it serves. */
interface Started {
  ready(): Promise<DemoWorld>;
}

const DEMO_FILE = "demo.json";
const PORT_DEFAULT = 8000;

/** Prints the lines of the store that the service runs on. */
export async function greet(service: Started, config: Config, port: number): Promise<void> {
  const origin = `http://${config.host}:${port}`;
  if (config.databaseUrl === null) await greetEmbedded(service, config, origin);
  else await greetServer(service, config, origin, port);
}

async function greetEmbedded(service: Started, { dataDir }: Config, origin: string): Promise<void> {
  const serving = await service.ready().catch(() => null);
  if (serving === null) return;
  const isShown = await isKept(dataDir, DEMO_FILE);
  const demo = isShown ? null : await makeDemo(serving);
  if (demo !== null) {
    await keepSecret(dataDir, DEMO_FILE, JSON.stringify(demo, null, 2));
    // Not by `console`: with tracing on, that would send the keys to the log collector.
    Deno.stdout.writeSync(new TextEncoder().encode(`${demoText(demo, origin)}\n`));
  } else if (isShown) {
    console.log(`The keys of the demo app are in ${dataDir}/${DEMO_FILE}`);
  }
  console.log(`The admin token is in ${dataDir}/${ADMIN_TOKEN_FILE}`);
  console.log(`Holdfast listens on ${origin}`);
}

/** Prints that it starts, and the address when calls are answered. */
async function greetServer(
  service: Started,
  { adminToken }: Config,
  origin: string,
  port: number,
): Promise<void> {
  console.log(`Holdfast starts; ${origin}/readyz reports when it answers calls`);
  if (adminToken === null) console.log(NO_TOKEN);
  const serving = await service.ready().catch(() => null);
  if (serving === null) return;
  console.log(`Holdfast listens on ${origin}`);
  if (serving.registry.workspaces.size > 0) return;
  console.log(firstAppText(origin, port, adminToken !== null));
}

const NO_TOKEN =
  "The admin API is off: HOLDFAST_ADMIN_TOKEN is not set. Set it to a secret of at least 16 characters and start again";

/** Commands that work when pasted into a shell with the admin token. */
function firstAppText(origin: string, port: number, hasToken: boolean): string {
  const url = port === PORT_DEFAULT ? "" : ` --url ${origin}`;
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
