// A stage for one test: a store that outlives the processes on it, the processes, and an app with subscribed users.
// Whatever happens, its children end and its store is removed.

import type { Database } from "../../src/storage/database.ts";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { Program, until, within } from "./program.ts";
import { answerOf, once, type WireCall, type WireResponse } from "./wire.ts";
import { copyMigratedStore } from "../support/kept_stores.ts";
import { copyTemplate } from "../support/server_stores.ts";
import { testServerUrl } from "../support/test_store.ts";

export const ADMIN_TOKEN = "crash-admin-token-0123456789";
export const TIGHT_QUOTA = 40;
/** The user with a quota that is nearly always used up. */
export const TIGHT_USER = "tight";
/** A user who only ever uses more, so that no answer may show less than an answer before its call. */
export const WITNESS_USER = "witness";
/** The account at which most users count too. */
const ACCOUNT_USER = "account";
/** A user with a rate of tracks and a limit of reserves in flight. */
export const GUARDED_USER = "guarded";
export const RATE_QUOTA = 8;
export const RATE_SECONDS = 30;
export const OPEN_QUOTA = 4;
/** Everyone else, the hot one first. */
export const WIDE_USERS: readonly string[] = ["hot", ...Array.from({ length: 7 }, (_, index) => `u${index}`)];

const READY_MS = 180_000;
const CLEANUP_MS = 60_000;

const CATALOG = {
  plans: [
    plan("plan_wide", "lg_wide", 1e9),
    plan("plan_tight", "lg_tight", TIGHT_QUOTA),
    plan("plan_guarded", "lg_guarded", 1e9, [
      guard("lg_rate", "image.track", RATE_QUOTA, { type: "rolling", seconds: RATE_SECONDS }),
      guard("lg_open", "image.reserve", OPEN_QUOTA, { type: "concurrent" }),
    ]),
  ],
};

function guard(id: string, event: string, quota: number, period: object) {
  return { id, label: id, unit: "count", quota, matches: [{ event }], period };
}

function plan(id: string, group: string, quota: number, guards: object[] = []) {
  const limit = { id: group, label: "Images", unit: "count", quota, matches: [{ event: "image.*" }] };
  return {
    id,
    name: id,
    rank: 1,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [limit, ...guards],
  };
}

/** The store under test and everything that runs on it. */
export class Stage implements AsyncDisposable {
  readonly programs: Program[] = [];
  readonly #folder: string | null;
  readonly #server: Database | null;
  readonly #name: string;
  readonly #url: string | null;
  #look: Database | null = null;
  /** The database's name, where the processes have several. */
  storeName: string | null = null;
  secretKey = "";
  workspaceId = "";
  /** Whether the store stays when the stage ends. */
  isKept = false;

  private constructor(
    parts: { folder: string | null; server: Database | null; name: string; url: string | null },
  ) {
    this.#folder = parts.folder;
    this.#server = parts.server;
    this.#name = parts.name;
    this.#url = parts.url;
  }

  /**
   * Makes a store without rows: a scratch database of a server where there is one, else a folder.
   *
   * @param isEmpty whether the server's database lacks its tables too, which the first start makes; a folder always does
   */
  static async open(
    server: string | null = testServerUrl(),
    isEmpty: boolean = server !== testServerUrl(),
  ): Promise<Stage> {
    if (server === null) {
      const folder = await Deno.makeTempDir({ prefix: "holdfast_crash_" });
      return new Stage({ folder, server: null, name: "", url: null });
    }
    const name = `holdfast_crash_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
    const admin = openPostgres(server, 2);
    if (isEmpty) await admin.script(`create database ${name}`);
    else await copyTemplate(server, admin, name);
    // The URL may name several servers, which the class URL cannot read.
    const url = server.replace(/(\/\/[^/?]+)(\/[^?]*)?/, `$1/${name}`);
    return new Stage({ folder: null, server: admin, name, url });
  }

  /** The scratch database's name and a connection beside it, on a server. */
  get server(): { readonly admin: Database; readonly name: string; readonly url: string } {
    if (this.#server === null || this.#url === null) throw new Error("This stage has no server");
    return { admin: this.#server, name: this.#name, url: this.#url };
  }

  /** The scratch database of a server, for looks into its tables beside the processes. */
  get look(): Database {
    return this.#look ??= openPostgres(this.server.url, 1);
  }

  get folder(): string {
    if (this.#folder === null) throw new Error("This stage has no folder");
    return this.#folder;
  }

  get isEmbedded(): boolean {
    return this.#folder !== null;
  }

  /** Starts the program on the store. */
  start(settings: Readonly<Record<string, string>> = {}, openFilesMax: number | null = null): Program {
    const store: Record<string, string> = this.#folder === null
      ? { DATABASE_URL: this.server.url }
      : { HOLDFAST_DATA_DIR: this.#folder };
    const program = new Program({ ...store, HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN, ...settings }, {
      openFilesMax,
    });
    this.programs.push(program);
    return program;
  }

  /** Starts the program and waits until it serves; answers where. The stage's first one finds its folder made. */
  async startReady(
    settings: Readonly<Record<string, string>> = {},
    openFilesMax: number | null = null,
  ): Promise<{ program: Program; origin: string }> {
    if (this.#folder !== null && this.programs.length === 0) await copyMigratedStore(this.#folder);
    const program = this.start(settings, openFilesMax);
    const origin = await program.origin();
    await untilReady(origin, READY_MS);
    return { program, origin };
  }

  /** Makes the app, its catalog and its users. */
  async populate(origin: string): Promise<void> {
    const app = await makeApp(origin, "Crash", this.storeName);
    this.secretKey = app.secretKey;
    this.workspaceId = app.workspaceId;
    const plans = new Map([[TIGHT_USER, "plan_tight"], [GUARDED_USER, "plan_guarded"]]);
    for (const userId of [TIGHT_USER, WITNESS_USER, ACCOUNT_USER, GUARDED_USER, ...WIDE_USERS]) {
      const planId = plans.get(userId) ?? "plan_wide";
      const body = { userId, planId };
      await must(origin, { method: "POST", path: "/api/v1/subscriptions", bearer: this.secretKey, body });
    }
    // The witness and the busiest user stay alone.
    for (const userId of [TIGHT_USER, ...WIDE_USERS.slice(1)]) {
      const path = `/api/v1/users/${userId}/parent`;
      const body = { parentId: ACCOUNT_USER };
      await must(origin, { method: "PUT", path, bearer: this.secretKey, body });
    }
  }

  /** Opens the store beside or, on the embedded one, in place of the program. */
  async openDatabase(): Promise<Database> {
    if (this.#folder === null) return openPostgres(this.server.url, 2);
    return await openEmbedded(this.#folder);
  }

  /** Looks into the store. */
  async withDatabase<T>(look: (database: Database) => Promise<T>): Promise<T> {
    const database = await this.openDatabase();
    try {
      return await look(database);
    } finally {
      await database.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await within(Promise.all(this.programs.map((program) => program.kill())), CLEANUP_MS, () => "clean-up");
    if (this.#folder !== null && !this.isKept) await Deno.remove(this.#folder, { recursive: true });
    await this.#look?.close();
    if (this.#server === null) return;
    if (!this.isKept) await this.#server.script(`drop database if exists ${this.#name} with (force)`);
    await this.#server.close();
  }
}

/**
 * Makes an app in a workspace of its own, with the catalog of this file.
 *
 * @param store the database of the workspace, where there are several
 */
export async function makeApp(
  origin: string,
  name: string,
  store: string | null = null,
): Promise<{ readonly workspaceId: string; readonly secretKey: string }> {
  const admin = (method: string, path: string, body: unknown) =>
    must(origin, { method, path: `/api/admin/v1${path}`, bearer: ADMIN_TOKEN, body });
  const { workspaceId } =
    (await admin("POST", "/workspaces", store === null ? { name } : { name, store })).body.data;
  const app = (await admin("POST", "/apps", { name, workspaceId })).body.data;
  await admin("PUT", `/apps/${app.appId}/catalog`, CATALOG);
  const isSecret = (key: { class: string; mode: string }) => key.class === "secret" && key.mode === "live";
  return { workspaceId, secretKey: app.keys.find(isSecret).key };
}

/** Waits until a process serves. */
export async function untilReady(origin: string, limitMs: number): Promise<void> {
  await until(`${origin} serves`, limitMs, async () => await readiness(origin) === 200 ? true : null);
}

/** The status of `/readyz`, or null without an answer. */
export async function readiness(origin: string, timeoutMs = 2_000): Promise<number | null> {
  const outcome = await once(origin, { method: "GET", path: "/readyz" }, timeoutMs);
  return outcome.kind === "answer" ? outcome.answer.status : null;
}

async function must(origin: string, call: WireCall): Promise<WireResponse> {
  const answer = answerOf(await once(origin, call));
  if (answer.status !== 200) throw new Error(`${call.path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer;
}
