// The real service as a child on a scratch database, as benchmarks of their own use it: started, set up through the
// admin API with one app and its catalog, and called with plain fetch.
import { Child, type Cleanup, freePort, ROOT, TEMP } from "./processes.ts";

const READY_MS = 30_000;
const CALL_MS = 60_000;
const SECRET = "bench-secret-0123456789";

/** A running service and how to call it. */
export class Client {
  readonly base: string;
  readonly adminToken: string;
  readonly child: Child;
  key = "";

  constructor(base: string, adminToken: string, child: Child) {
    this.base = base;
    this.adminToken = adminToken;
    this.child = child;
  }

  /** The `data` of an answer, or an error with what the service said. */
  // deno-lint-ignore no-explicit-any -- a benchmark looks at whatever came back
  async call(method: string, path: string, body?: object, headers = {}): Promise<any> {
    const token = path.startsWith("admin/") ? this.adminToken : this.key;
    const answer = await fetch(`${this.base}/api/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return JSON.parse(text).data;
  }
}

/** Starts the service and waits until it answers. */
export async function startService(databaseUrl: string, cleanup: Cleanup): Promise<Client> {
  const folder = await Deno.makeTempDir({ dir: TEMP, prefix: "holdfast_bench_data_" });
  cleanup.add(`remove ${folder}`, () => Deno.remove(folder, { recursive: true }));
  const base = `http://127.0.0.1:${freePort()}`;
  const adminToken = crypto.randomUUID();
  const permissions = ["net=127.0.0.1,localhost", "env", "sys", "read", `write=${folder}`];
  const args = [
    "run",
    "--quiet",
    "--no-prompt",
    "--unstable-cron",
    ...permissions.map((name) => `--allow-${name}`),
  ];
  const child = Child.start(cleanup, "holdfast", "deno", [...args, new URL("src/main.ts", ROOT).pathname], {
    PORT: new URL(base).port,
    HOLDFAST_HOST: "127.0.0.1",
    DATABASE_URL: databaseUrl,
    HOLDFAST_ADMIN_TOKEN: adminToken,
    HOLDFAST_PRIVACY_SECRET: SECRET,
    HOLDFAST_DATA_DIR: folder,
  });
  child.drainStdout();
  const client = new Client(base, adminToken, child);
  const deadline = Date.now() + READY_MS;
  while (!await isReady(base)) {
    if (child.ended || Date.now() > deadline) throw new Error(`The service did not start:\n${child.tail}`);
    await sleep(100);
  }
  return client;
}

/** Makes a workspace and an app with a catalog; its secret live key is used from then on. */
export async function makeApp(client: Client, catalog: object): Promise<void> {
  const { workspaceId } = await client.call("POST", "admin/v1/workspaces", { name: "Bench" });
  const { appId, keys } = await client.call("POST", "admin/v1/apps", { name: "Bench", workspaceId });
  await client.call("PUT", `admin/v1/apps/${appId}/catalog`, catalog);
  client.key =
    keys.find((key: { class: string; mode: string }) => key.class === "secret" && key.mode === "live").key;
}

async function isReady(base: string): Promise<boolean> {
  try {
    const answer = await fetch(`${base}/readyz`, { signal: AbortSignal.timeout(2000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/** Waits. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
