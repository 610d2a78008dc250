// The scene of an attack: the real program on a store of its own, a tenant who does nothing wrong, and one who attacks.

import { signEndUserToken } from "../../src/client/end_user_token.ts";
import { Stage } from "../crash/stage.ts";
import { answerOf, once, type WireCall } from "../crash/wire.ts";
import { ADMIN_TOKEN } from "../crash/stage.ts";
import { ModelServer } from "../support/model_server.ts";
import { STEADY_USERS } from "./steady_users.ts";
import type { Attack } from "./tools.ts";

/** A tenant's app and its keys. */
export interface Tenant {
  readonly appId: string;
  readonly identitySecret: string;
  readonly secretLive: string;
  readonly secretTest: string;
  readonly publicLive: string;
}

/** What an attack has to work with. */
export interface AttackScene {
  /** The first process, which the other tenant calls. */
  readonly origin: string;
  /** Every process. */
  readonly origins: readonly string[];
  /** Behind the gateway, where that is on. */
  readonly model: ModelServer;
  readonly stage: Stage;
  readonly attacker: Tenant;
  readonly victim: Tenant;
  /** Sends a call, to the first process unless told otherwise; status 0 where the connection was cut. */
  ask(call: WireCall, origin?: string): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Makes a call of the admin API; returns its data, or throws where it fails. */
  // deno-lint-ignore no-explicit-any -- attacks look at whatever came back
  admin(method: string, path: string, body: unknown): Promise<any>;
  /** Headers of a page of the attacker's user. */
  pageHeaders(userId: string): Promise<Record<string, string>>;
}

const CATALOG = {
  gateway: { models: ["mini"] },
  models: [{
    id: "mini",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    outputCentsPerMillionTokens: 60,
  }],
  packs: [{
    id: "cpk",
    name: "Pack",
    kind: "generic",
    unit: "count",
    matches: [{ event: "credit.*" }],
    stripePrices: ["price_pack"],
    items: [],
  }],
  plans: [{
    id: "plan_free",
    name: "Free",
    rank: 0,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [
      limit("lg_images", "count", "image.*"),
      limit("lg_tokens", "tokens", "openai.*"),
    ],
  }],
};

function limit(id: string, unit: string, event: string) {
  return { id, label: id, unit, quota: 1e9, matches: [{ event }] };
}

/** Users of the attacker's app with a plan. */
const ATTACKED_USERS = ["paying", "early", "streamer", "holder_0", "holder_1", "hidden"];

/** Starts the program on a new store, so often as the attack asks, and makes both tenants. */
export async function openScene(
  { gateway = false, processes = 1 }: Pick<Attack, "gateway" | "processes">,
): Promise<AttackScene & AsyncDisposable> {
  const stage = await Stage.open();
  const model = new ModelServer();
  const dispose = async () => {
    await stage[Symbol.asyncDispose]();
    await model.close();
  };
  const settings = {
    ANALYTICS_EXPORT_SECRET: "attack-export-secret-0123456789",
    HOLDFAST_PRIVACY_SECRET: "attack-privacy-secret-0123456789",
    // As in production: the code of an embedded store is optimised.
    ...stage.isEmbedded ? { DENO_V8_FLAGS: "--no-liftoff-only" } : {},
    ...gateway ? { OPENAI_API_KEY: "sk-attack", OPENAI_BASE_URL: model.baseUrl } : {},
  };
  try {
    const origins: string[] = [];
    while (origins.length < processes) origins.push((await stage.startReady(settings)).origin);
    const [origin] = origins as [string];
    const admin = async (method: string, path: string, body: unknown) => {
      const call = { method, path: `/api/admin/v1${path}`, bearer: ADMIN_TOKEN, body };
      const { status, body: answer } = answerOf(await once(origin, call));
      if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`);
      return answer.data;
    };
    const [victim, attacker] = [await tenant(admin, "Victim"), await tenant(admin, "Attacker")];
    for (const userId of STEADY_USERS) await subscribe(origin, victim, userId);
    for (const userId of ATTACKED_USERS) await subscribe(origin, attacker, userId);
    return {
      origin,
      origins,
      model,
      stage,
      attacker,
      victim,
      admin,
      ask: async (call, to = origin) => {
        const outcome = await once(to, call, 60_000);
        return outcome.kind === "answer" ? outcome.answer : { status: 0, body: null };
      },
      pageHeaders: async (userId) => ({
        "authorization": `Bearer ${attacker.publicLive}`,
        "x-end-user-token": await signEndUserToken({ identitySecret: attacker.identitySecret, userId }),
      }),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function subscribe(origin: string, { secretLive }: Tenant, userId: string): Promise<void> {
  const body = { userId, planId: "plan_free" };
  const call = { method: "POST", path: "/api/v1/subscriptions", bearer: secretLive, body };
  const { status } = answerOf(await once(origin, call));
  if (status !== 200) throw new Error(`A subscription was answered ${status}`);
}

async function tenant(admin: AttackScene["admin"], name: string): Promise<Tenant> {
  const { workspaceId } = await admin("POST", "/workspaces", { name });
  const app = await admin("POST", "/apps", { name, workspaceId });
  await admin("PUT", `/apps/${app.appId}/catalog`, CATALOG);
  const keyOf = (kind: string, mode: string): string =>
    app.keys.find((key: { class: string; mode: string }) => key.class === kind && key.mode === mode).key;
  return {
    appId: app.appId,
    identitySecret: app.identitySecret,
    secretLive: keyOf("secret", "live"),
    secretTest: keyOf("secret", "test"),
    publicLive: keyOf("public", "live"),
  };
}
