// The scene of the fuzzing: a service with two apps whose ids and texts must stay their own, users in many states, a
// user whose quota only reserve and track use, and the texts that requests are made of.

import { endUserToken } from "../routes/support.ts";
import demo from "../../src/tenant/demo/catalog.json" with { type: "json" };
import { ModelServer } from "../support/model_server.ts";
import {
  ADMIN_TOKEN,
  startTestService,
  TEST_FEATURES,
  type TestApp,
  type TestService,
} from "../support/test_service.ts";

const MODEL_KEY = "sk-model-0123456789";
/** A part of every id and text of the foreign app, and of no request. */
export const FOREIGN_MARK = "foreign_7d1f";
/** A part of every prompt that is sent. */
export const PROMPT_MARK = "prompt_4b9e";
/** Only reserve, track, can-use and reads name this user: its counters can never pass a quota. */
export const TIGHT_USER = "user_tight";
const USERS = ["user_a", "user_b", "user_c", "anon_d", "__proto__", "constructor", "😀 /?#%", "user_e"];
const EVENTS = ["image.render", "image.x", "chat.reply", "video.veo-3", "agent.step", "odd.toString", "one"];
const ODD = { event: "odd.*" };

/** The demo's catalog with parts that have the names of every object's properties as ids. */
export const CATALOG = {
  ...demo,
  featureDefaults: { sso: false, constructor: true },
  models: [...demo.models, { id: "__proto__", modality: "image", amountMode: "per_call", centsPerCall: 3 }],
  plans: [...demo.plans, {
    id: "constructor",
    name: "hasOwnProperty",
    rank: 30,
    period: { type: "weekly", anchor: "calendar" },
    limits: [
      { id: "__proto__", label: "toString", unit: "count", quota: 7, matches: [ODD] },
      { id: "valueOf", label: "valueOf", unit: "cents", quota: 70, matches: [{ event: "*" }] },
    ],
  }],
  packs: [...demo.packs, {
    id: "__proto__",
    name: "toString",
    kind: "per_type",
    items: [{ id: "constructor", label: "x", unit: "count", amount: 3, matches: [ODD] }],
  }],
};

/** What a fuzzing works on. */
export interface FuzzScene {
  readonly service: TestService;
  readonly app: TestApp;
  readonly foreign: TestApp;
  /** An app whose catalog the admin calls of the fuzzing change while its users are metered. */
  readonly playground: TestApp;
  /** By member name; ids that answers name are added. */
  readonly pools: Map<string, string[]>;
  /** Ids of the foreign app other than user ids. */
  readonly foreignIds: readonly string[];
  /** What no answer may hold unless the request held it. */
  readonly secrets: readonly string[];
  readonly endUserTokens: readonly string[];
  close(): Promise<void>;
}

/** Starts a service and fills it. */
export async function openScene(): Promise<FuzzScene> {
  const model = new ModelServer();
  const modelServer = { apiKey: MODEL_KEY, baseUrl: model.baseUrl };
  const service = await startTestService(undefined, { modelServer, allowsPrivateWebhooks: true });
  const [app, foreign, playground] = [
    await service.newApp(CATALOG),
    await service.newApp(CATALOG),
    await service.newApp(CATALOG),
  ];
  const pools = makePools(app, playground);
  for (const key of [app.secretLive, app.secretTest]) await populate(app, key, pools);
  await populate(playground, playground.secretLive, pools);
  const exp = Math.floor(service.clock.now() / 1000) + 3600;
  const userIds = ["user_a", "user_b", "__proto__", "unknown"];
  return {
    service,
    app,
    foreign,
    playground,
    pools,
    foreignIds: await populateForeign(foreign),
    secrets: [
      ...[app, foreign].flatMap(({ secretLive, secretTest, publicLive, publicTest, identitySecret }) => [
        secretLive,
        secretTest,
        publicLive,
        publicTest,
        identitySecret,
      ]),
      ADMIN_TOKEN,
      MODEL_KEY,
      TEST_FEATURES.exportSecret as string,
      TEST_FEATURES.privacySecret as string,
    ],
    endUserTokens: [
      ...userIds.map((userId) => endUserToken(app.identitySecret, { userId, exp })),
      endUserToken(foreign.identitySecret, { userId: "user_a", exp }),
      endUserToken(app.identitySecret, { userId: "user_a", exp: 1 }),
      endUserToken(app.identitySecret, '{"userId":{"__proto__":1},"exp":1e99}'),
      "x.y",
    ],
    close: async () => {
      await service.close();
      await model.close();
    },
  };
}

function makePools(app: TestApp, playground: TestApp): Map<string, string[]> {
  const users = [...USERS, ...USERS, "unknown"];
  const groups = CATALOG.plans.flatMap(({ limits }) => limits.map(({ id }) => id));
  const texts = (text: string) => [text, `${PROMPT_MARK} ${text}`, PROMPT_MARK.repeat(3000)];
  return new Map([
    ...["userId", "distinctId", "from", "to", "alias", "mergeAnonymousId", "customerId"].map((name) =>
      [name, users] as [string, string[]]
    ),
    ["meteredUserId", [...users, TIGHT_USER, TIGHT_USER]],
    ["event", [...EVENTS, ...EVENTS, "nothing.matches", "compose.usage-recap"]],
    ["eventType", [...EVENTS]],
    ["planId", [...CATALOG.plans.map(({ id }) => id), "pro", "hasOwnProperty", "plan_x"]],
    ["packId", [...CATALOG.packs.map(({ id }) => id), "wallet", "toString", "cpk_x"]],
    ["groupId", groups],
    ["key", Object.keys(CATALOG.featureDefaults)],
    ["type", ["usage-recap", "__proto__", "nothing"]],
    ["prompt", texts("a cat")],
    ["response", texts("a dog")],
    ["reason", ["because", "r".repeat(600)]],
    ["provider", ["stripe", "__proto__"]],
    ["externalId", ["sub_1", "constructor"]],
    ["externalRef", ["order_1", "order_2", "__proto__"]],
    ["cursor", ["", "x", "MTc5NTI3MjUzMDg4OSBjbGVfMDFr"]],
    ["token", ["", "x.y"]],
    ["appId", [playground.appId, app.appId, "app_x", "__proto__"]],
    ["workspaceId", [playground.workspaceId, "ws_x", "constructor"]],
    ["keyId", ["key_x", "toString"]],
    ["reservationId", ["rsv_x", "rsv_1_x", "rsv_99999999999999999999_x"]],
    ["balanceId", ["crb_x", "crb_1_x", "crb_-1_x"]],
    ["eventId", ["evt_x"]],
    ["runId", ["run_x", "run_1_x"]],
    ["jobId", ["job_x"]],
    // There is no listener at that address.
    ["url", ["http://127.0.0.1:9/hooks", "http://[::1]:9/", "https://127.0.0.1:9/"]],
    ["events", ["*", "credits.*", "subscription.created", "user.merged", "reservation.expired"]],
    ["webhookId", ["whk_x", "__proto__"]],
    ["messageId", ["whm_x"]],
  ]);
}

async function populate(app: TestApp, key: string, pools: Map<string, string[]>): Promise<void> {
  const plans = ["plan_pro", "plan_team", "plan_free", "constructor"];
  for (const [at, userId] of [...USERS, TIGHT_USER].entries()) {
    const planId = userId === TIGHT_USER ? "plan_free" : plans[at % plans.length] as string;
    const post = async (path: string, body: Record<string, unknown>) => {
      const { body: answer } = await app.call("POST", path, { userId, ...body }, { key });
      return answer.data ?? {};
    };
    await post("/subscriptions", { planId });
    if (userId === TIGHT_USER) continue;
    const { balanceId } = await post("/credits/grant", { packId: "__proto__" });
    const { reservationId } = await post("/reserve", { event: "image.render", prompt: `${PROMPT_MARK} x` });
    const { eventId } = await post("/track", { event: "odd.toString" });
    const { runId } = await post("/runs", { limits: [{ unit: "count", quota: 50 }] });
    for (const [name, id] of Object.entries({ balanceId, reservationId, eventId, runId })) {
      if (id !== undefined) pools.get(name)?.push(id);
    }
  }
}

async function populateForeign(app: TestApp): Promise<string[]> {
  const userId = `${FOREIGN_MARK}_user`;
  const post = async (path: string, body: Record<string, unknown>) => {
    return (await app.call("POST", path, { userId, ...body })).body.data ?? {};
  };
  const metadata = { note: FOREIGN_MARK };
  await post("/subscriptions", { planId: "plan_pro" });
  const { balanceId } = await post("/credits/grant", {
    packId: "cpk_wallet",
    quantity: 5,
    notes: FOREIGN_MARK,
  });
  const { reservationId } = await post("/reserve", { event: "image.x", metadata, prompt: FOREIGN_MARK });
  const { eventId } = await post("/track", { event: "image.render", metadata, prompt: FOREIGN_MARK });
  await post("/identify", { distinctId: userId, properties: metadata });
  const { runId } = await post("/runs", {
    limits: [{ unit: "count", quota: 5 }],
    name: FOREIGN_MARK,
    metadata,
  });
  const { jobId } = await post("/delete-person", { distinctId: `${FOREIGN_MARK}_gone` });
  return [balanceId, reservationId, eventId, runId, jobId];
}
