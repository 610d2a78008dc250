// The scene of an attack: the real program on a store of its own, a tenant who does nothing wrong, and one who attacks.

import { signEndUserToken } from "../../src/client/end_user_token.ts";
import { Stage } from "../crash/stage.ts";
import { answerOf, once, type WireCall } from "../crash/wire.ts";
import { ADMIN_TOKEN } from "../crash/stage.ts";

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
  readonly origin: string;
  readonly stage: Stage;
  readonly attacker: Tenant;
  readonly victim: Tenant;
  /** Sends a call and answers its status and body; status 0 where the connection was cut. */
  ask(call: WireCall): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Headers of a page of the attacker's user. */
  pageHeaders(userId: string): Promise<Record<string, string>>;
}

const CATALOG = {
  plans: [{
    id: "plan_free",
    name: "Free",
    rank: 0,
    default: true,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [{
      id: "lg_images",
      label: "Images",
      unit: "count",
      quota: 1e9,
      matches: [{ event: "image.*" }],
    }],
  }],
};

/** Starts the program on a new store and makes both tenants. */
export async function openScene(): Promise<AttackScene & AsyncDisposable> {
  const stage = await Stage.open();
  try {
    const { origin } = await stage.startReady({
      ANALYTICS_EXPORT_SECRET: "attack-export-secret-0123456789",
      HOLDFAST_PRIVACY_SECRET: "attack-privacy-secret-0123456789",
      // As in production: the code is optimised.
      DENO_V8_FLAGS: "--no-liftoff-only",
    });
    const [victim, attacker] = [await tenant(origin, "Victim"), await tenant(origin, "Attacker")];
    return {
      origin,
      stage,
      attacker,
      victim,
      ask: async (call) => {
        const outcome = await once(origin, call, 60_000);
        return outcome.kind === "answer" ? outcome.answer : { status: 0, body: null };
      },
      pageHeaders: async (userId) => ({
        "authorization": `Bearer ${attacker.publicLive}`,
        "x-end-user-token": await signEndUserToken({ identitySecret: attacker.identitySecret, userId }),
      }),
      [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
    };
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}

async function tenant(origin: string, name: string): Promise<Tenant> {
  const admin = async (method: string, path: string, body: unknown) => {
    const outcome = await once(origin, { method, path: `/api/admin/v1${path}`, bearer: ADMIN_TOKEN, body });
    return answerOf(outcome).body.data;
  };
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
