// Holdfast itself: the real service as a child on the scratch database, set up as a customer would do it, through the
// admin API (workspace, app, catalog) and with one subscription and one grant of credits a user.
import { type Bench, type Contestant, type Running, Skipped } from "../contestant.ts";
import postgres from "postgres";
import { startArguments } from "../../crash/program.ts";
import { ACCOUNT, COLD_USERS, EVENTS, memberId, MEMBERS, ORGANISATION, userId, USERS } from "../load_plan.ts";
import { Child, freePort, messageOf, ROOT, TEMP } from "../processes.ts";

const READY_MS = 30_000;
const SEED_CONNECTIONS = 64;
const PLAN_ID = "plan_bench";
const PACK_ID = "cpk_bench";

const CATALOG = {
  settings: { reservationTtlSeconds: 600 },
  models: [{
    id: "mini",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    outputCentsPerMillionTokens: 60,
  }],
  plans: [{
    id: PLAN_ID,
    name: "Bench",
    rank: 0,
    period: { type: "monthly", anchor: "calendar" },
    onPlanChange: "carry",
    limits: [
      limit("lg_bench_images", "Images", "count", "image.*"),
      limit("lg_bench_tokens", "Chat tokens", "tokens", "chat.*"),
      limit("lg_bench_budget", "Budget", "cents", "chat.*"),
    ],
  }],
  packs: [{
    id: PACK_ID,
    name: "Bench",
    kind: "generic",
    unit: "count",
    matches: [{ event: EVENTS.credits }],
    items: [],
  }],
  composeTypes: [],
};

function limit(id: string, label: string, unit: string, event: string) {
  return { id, label, unit, quota: 1_000_000_000_000, matches: [{ event }] };
}

/** The service: reserve by the plan and by credits, and reserve + commit. */
export const holdfast: Contestant = {
  name: "holdfast",
  isService: true,
  start: async (bench) => {
    const running = await startWithUsers(bench);
    if (bench.needs.cold) {
      bench.progress(`holdfast: adding ${COLD_USERS} cold users to the tables`);
      await addColdUsers(bench.databaseUrl);
    }
    return running;
  },
};

/** The service on the embedded store, in a folder of its own. */
export const embedded: Contestant = {
  name: "embedded",
  start: (bench) => startWithUsers({ ...bench, databaseUrl: EMBEDDED }),
};

/** What the service reads as no server: it then embeds one. */
const EMBEDDED = "";

async function startWithUsers(bench: Bench): Promise<Running> {
  const adminToken = crypto.randomUUID().replaceAll("-", "");
  const { base, child } = await startService(bench, adminToken);
  const { key } = await setUp(base, adminToken);
  bench.progress(`holdfast: subscribing ${USERS} users`);
  await subscribeAll(base, key);
  if (bench.needs.members) {
    bench.progress(`holdfast: putting ${MEMBERS} members under an account`);
    await makeMembers(base, key);
  }
  return {
    port: Number(new URL(base).port),
    authorization: `Bearer ${key}`,
    pid: child.pid,
    metricsUrl: `${base}/metrics`,
  };
}

/** A started service. */
export interface StartedService {
  readonly base: string;
  readonly child: Child;
}

/** Starts the service on the scratch database with some settings of its own and waits until it is ready. */
export async function startService(
  bench: Pick<Bench, "databaseUrl" | "cleanup">,
  adminToken: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<StartedService> {
  const program = new URL("src/main.ts", ROOT);
  await Deno.stat(program).catch(() => {
    throw new Skipped("src/main.ts does not exist");
  });
  const folder = await Deno.makeTempDir({ dir: TEMP, prefix: "holdfast_bench_data_" });
  bench.cleanup.add(`remove ${folder}`, () => Deno.remove(folder, { recursive: true }));
  const port = freePort();
  const engine = startArguments().filter((arg) => arg.startsWith("--v8-flags="));
  const flags = [...engine, "--unstable-cron", ...permissions(folder)];
  const args = ["run", "--quiet", "--no-prompt", ...flags, program.pathname];
  const child = Child.start(bench.cleanup, "holdfast", "deno", args, {
    PORT: String(port),
    HOLDFAST_HOST: "127.0.0.1",
    DATABASE_URL: bench.databaseUrl,
    HOLDFAST_ADMIN_TOKEN: adminToken,
    HOLDFAST_DATA_DIR: folder,
    ...settings,
  });
  child.drainStdout();
  const base = `http://127.0.0.1:${port}`;
  await waitUntilReady(base, child);
  return { base, child };
}

function permissions(folder: string): string[] {
  // Reading: npm packages and the program's own assets. Writing: the data folder only.
  return [
    "--allow-net=127.0.0.1,localhost",
    "--allow-env",
    "--allow-sys",
    "--allow-read",
    `--allow-write=${folder}`,
  ];
}

async function waitUntilReady(base: string, child: Child): Promise<void> {
  const deadline = Date.now() + READY_MS;
  let last = "no answer yet";
  while (Date.now() < deadline && !child.ended) {
    try {
      const answer = await fetch(`${base}/readyz`, { signal: AbortSignal.timeout(2000) });
      last = `${answer.status} ${(await answer.text()).slice(0, 200)}`;
      if (answer.status === 200) return;
    } catch (error) {
      last = messageOf(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the service did not become ready (${last}); its last output:\n${child.tail}`);
}

/** Makes workspace, app and catalog; answers the workspace and the secret live key. */
export async function setUp(
  base: string,
  adminToken: string,
): Promise<{ readonly workspaceId: string; readonly key: string }> {
  const admin = (method: string, path: string, body: unknown) =>
    call(method, `${base}/api/admin/v1/${path}`, adminToken, body);
  const { workspaceId } = await admin("POST", "workspaces", { name: "Bench" });
  const { appId, keys } = await admin("POST", "apps", { name: "Bench", workspaceId });
  await admin("PUT", `apps/${appId}/catalog`, CATALOG);
  const found = (keys as { key: string; class: string; mode: string }[])
    .find((each) => each.class === "secret" && each.mode === "live");
  if (found === undefined) throw new Error("the new app came without a secret live key");
  return { workspaceId: workspaceId as string, key: found.key };
}

/** Gives every user of the benchmark a plan and credits. */
export async function subscribeAll(base: string, key: string, users = USERS): Promise<void> {
  let next = 0;
  const connection = async () => {
    while (next < users) {
      const user = userId(next++);
      await call("POST", `${base}/api/v1/subscriptions`, key, { userId: user, planId: PLAN_ID });
      await call("POST", `${base}/api/v1/credits/grant`, key, {
        userId: user,
        packId: PACK_ID,
        quantity: 1_000_000_000,
      });
    }
  };
  await Promise.all(Array.from({ length: SEED_CONNECTIONS }, connection));
}

/** Makes an organisation, an account below it and the members of the account, each with the plan. */
async function makeMembers(base: string, key: string): Promise<void> {
  const below = async (user: string, parentId: string | null) => {
    await call("POST", `${base}/api/v1/subscriptions`, key, { userId: user, planId: PLAN_ID });
    if (parentId === null) return;
    await call("PUT", `${base}/api/v1/users/${user}/parent`, key, { parentId });
  };
  await below(ORGANISATION, null);
  await below(ACCOUNT, ORGANISATION);
  for (let n = 0; n < MEMBERS; n++) await below(memberId(n), ACCOUNT);
}

/**
 * Adds subscribed users that the service has not loaded, as copies of a user that it made. Their numbers are far above
 * those that it gives out in a run.
 */
async function addColdUsers(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await waitForRow(sql);
    for (const table of ["users", "subscriptions"] as const) {
      const columns = await sql`
        select column_name as name from information_schema.columns
        where table_schema = 'public' and table_name = ${table} order by ordinal_position`;
      const values = columns.map(({ name }) => COLD_VALUES[`${table}.${name}`] ?? `made.${name}`);
      const made = table === "users"
        ? "made.id = $1"
        : "made.user_key = (select key from users where id = $1)";
      await sql.unsafe(
        `insert into ${table} (${columns.map(({ name }) => name).join(", ")})
         select ${values.join(", ")} from ${table} as made, generate_series(0, ${COLD_USERS - 1}) as n
         where ${made}`,
        [userId(0)],
      );
      await sql.unsafe(`analyze ${table}`);
    }
  } finally {
    await sql.end();
  }
}

/** Waits until the tables have what the service acknowledged. */
async function waitForRow(sql: postgres.Sql): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const [left] = await sql`select seq from journal limit 1`;
    if (left === undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the journal does not get empty");
}

const COLD_VALUES: Readonly<Record<string, string>> = {
  "users.key": "1000000000 + n",
  "users.id": "'cold-' || lpad(n::text, 7, '0')",
  "users.held_subscription_id": "'sub_cold' || lpad(n::text, 7, '0')",
  "subscriptions.id": "'sub_cold' || lpad(n::text, 7, '0')",
  "subscriptions.user_key": "1000000000 + n",
};

/** The `data` of an answer, or an error with what the service said. */
async function call(
  method: string,
  url: string,
  token: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(15_000),
  });
  const text = await answer.text();
  const envelope = parsed(text);
  if (!answer.ok || envelope.ok !== true) {
    throw new Error(`${method} ${new URL(url).pathname}: ${answer.status} ${text.slice(0, 500)}`);
  }
  return envelope.data as Record<string, unknown>;
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
