// Attempts at what is not the attacker's: other people's data, paid credits, free calls of a model, closed paths. Each is made
// once, and each returns a text where it succeeded.

import { createHmac } from "node:crypto";
import type { ModelRequest } from "../support/model_server.ts";
import { chatEvents } from "../support/model_server.ts";
import { pause } from "../crash/program.ts";
import type { AttackScene } from "./scene.ts";
import { type Attack, bytesOf, post, untilEnd } from "./tools.ts";

type Attempt = (scene: AttackScene) => Promise<string | null>;

const STRIPE_SECRET = "whsec_attack_0123456789abcdef";
const CHAT = "/openai/v1/chat/completions";

/** Makes attempts one after another; returns what succeeded. */
function attempts(name: string, all: readonly Attempt[], more: Pick<Attack, "gateway"> = {}): Attack {
  return {
    name,
    ...more,
    run: async (scene, signal) => {
      const found: string[] = [];
      for (const attempt of all) found.push(...[await attempt(scene)].filter((breach) => breach !== null));
      await untilEnd(signal);
      return found.length === 0 ? null : found.join("; ");
    },
  };
}

/** Calls with the attacker's secret key; returns the data, or throws where the call fails. */
async function must(
  { ask, attacker }: AttackScene,
  method: string,
  path: string,
  body?: unknown,
  // deno-lint-ignore no-explicit-any -- attacks look at whatever came back
): Promise<any> {
  const answer = await ask({ method, path: `/api/v1${path}`, bearer: attacker.secretLive, body });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return (answer.body as { data: unknown }).data;
}

async function closedPaths({ ask, attacker }: AttackScene): Promise<string | null> {
  const paths = [
    "/%6detrics",
    "/api/%61dmin/v1/workspaces",
    "/%61pi/admin/v1/workspaces",
    "/c%6fnsole/sign-in",
  ];
  for (const path of paths) {
    const { status } = await ask({ method: "GET", path, bearer: attacker.secretLive });
    if (status !== 404) return `${path} answered ${status}`;
  }
  return null;
}

/** Joins a paying user by a public key, and then exports, opts out and erases the attacker's own ids. */
async function personOfAnother(scene: AttackScene): Promise<string | null> {
  const { ask, attacker } = scene;
  const own = ["mine", "anon_mine"];
  await must(scene, "POST", "/track", { userId: "paying", event: "image.generated", prompt: "private" });
  for (
    const [distinctId, mergeAnonymousId] of [["paying", "mine"], ["mine", "paying"], ["paying", "anon_mine"]]
  ) {
    const body = { distinctId, mergeAnonymousId, consentGiven: true };
    await ask({ method: "POST", path: "/api/v1/identify", bearer: attacker.publicLive, body });
  }
  for (const distinctId of own) {
    const { downloadUrl } = await must(scene, "POST", "/export-person", { distinctId });
    const { pathname, search } = new URL(downloadUrl);
    const document = await (await fetch(scene.origin + pathname + search)).text();
    if (document.includes("private") || document.includes("paying")) return "another person was exported";
  }
  for (const distinctId of own) await must(scene, "POST", "/opt-out", { distinctId });
  if ((await must(scene, "GET", "/opted-out?distinctId=paying")).optedOut) {
    return "another person was opted out";
  }
  for (const distinctId of own) await must(scene, "POST", "/delete-person", { distinctId });
  await pause(1_000);
  const { events } = await must(scene, "GET", "/events?userId=paying");
  return events.length > 0 ? null : "another person was erased";
}

async function keyOfGrant(scene: AttackScene): Promise<string | null> {
  const { ask, attacker } = scene;
  const idempotencyKey = "grant-in_1Nabc";
  await ask({
    method: "POST",
    path: "/api/v1/capture",
    bearer: attacker.publicLive,
    body: { distinctId: "visitor", event: "page.seen" },
    idempotencyKey,
  });
  const { status } = await ask({
    method: "POST",
    path: "/api/v1/credits/grant",
    bearer: attacker.secretLive,
    body: { userId: "buyer", packId: "cpk", quantity: 1, externalRef: "in_1Nabc" },
    idempotencyKey,
  });
  return status === 200 ? null : `a grant under a key that a page took was answered ${status}`;
}

/** Sends signed messages of a proration, a trial and a connected account, which name a pack. */
async function unpaidPacks(scene: AttackScene): Promise<string | null> {
  const { ask, admin, attacker } = scene;
  await admin("PUT", `/apps/${attacker.appId}/stripe`, { mode: "live", webhookSecret: STRIPE_SECRET });
  const price = { pricing: { price_details: { price: "price_pack" } } };
  const line = (id: string, members: object) => ({ id, quantity: 100, ...price, ...members });
  const invoice = (no: number, ...data: object[]) => ({
    type: "invoice.paid",
    object: { id: `in_${no}`, metadata: { holdfast_user: "thief" }, lines: { data } },
  });
  const checkout = (userId: string) => ({
    type: "checkout.session.completed",
    object: {
      id: `cs_${userId}`,
      mode: "payment",
      payment_status: "paid",
      client_reference_id: userId,
      metadata: { holdfast_pack: "cpk" },
    },
  });
  const events = [
    invoice(1, line("il_1", { amount: 133, parent: { subscription_item_details: { proration: true } } })),
    invoice(2, line("il_2", { amount: 133, proration: true })),
    invoice(3, line("il_3", { amount: 0, description: "Trial period" })),
    { ...checkout("thief"), account: "acct_connected" },
    checkout("honest"),
  ];
  for (const [no, { object, ...event }] of events.entries()) {
    const created = Math.floor(Date.now() / 1000);
    const body = { id: `evt_${no}`, object: "event", created, livemode: true, data: { object }, ...event };
    const signed = createHmac("sha256", STRIPE_SECRET).update(`${created}.${JSON.stringify(body)}`).digest(
      "hex",
    );
    const { status } = await ask({
      method: "POST",
      path: `/api/v1/stripe/${attacker.appId}/live`,
      body,
      headers: { "stripe-signature": `t=${created},v1=${signed}` },
    });
    if (status !== 200) return `a message of Stripe was answered ${status}`;
  }
  const granted = async (userId: string) =>
    (await must(scene, "GET", `/credits?userId=${userId}`)).credits.length;
  if (await granted("honest") !== 1) return "a pack that was paid for was not granted";
  return await granted("thief") === 0 ? null : "packs were granted that are not paid for";
}

async function endlessTokens({ ask, attacker }: AttackScene): Promise<string | null> {
  const inAnHour = Math.floor(Date.now() / 1000) + 3_600;
  const payloads = [
    `{"userId":"user","exp":1e999}`,
    `{"userId":"user","exp":${inAnHour + 401 * 86_400}}`,
    `{"userId":"user","exp":${inAnHour},"mode":"test"}`,
  ];
  for (const payload of payloads) {
    const first = btoa(payload).replaceAll("=", "").replaceAll("+", "-").replaceAll("/", "_");
    const second = createHmac("sha256", attacker.identitySecret).update(first).digest("base64url");
    const { status } = await ask({
      method: "GET",
      path: "/api/v1/usage?userId=user",
      bearer: attacker.publicLive,
      headers: { "x-end-user-token": `${first}.${second}` },
    });
    if (status !== 403) return `a token with ${payload} was answered ${status}`;
  }
  return null;
}

async function signInFromElsewhere({ origin }: AttackScene): Promise<string | null> {
  const response = await fetch(`${origin}/console/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/x-www-form-urlencoded", "origin": "https://evil.example" },
    body: "token=crash-admin-token-0123456789",
  });
  await response.body?.cancel();
  return response.headers.has("set-cookie") ? "another site signed a browser in" : null;
}

/** Calls that two readers could read in two ways, name objects of others, or spend money by a test key. */
async function forbiddenCalls(scene: AttackScene): Promise<string | null> {
  const { model, attacker } = scene;
  const chat = (more: string) => `{"model":"mini","user":"u","messages":[]${more}}`;
  const rows = [
    [CHAT, chat(""), attacker.secretTest],
    [CHAT, chat(`,"Model":"dear"`), attacker.secretLive],
    [CHAT, chat(`,"model":"dear"`), attacker.secretLive],
    [CHAT, chat(`,"stream":1`), attacker.secretLive],
    [CHAT, `{"model":"dear","user":"u","messages":[]}`, attacker.secretLive],
    [
      "/openai/v1/responses",
      `{"model":"mini","user":"u","input":"x","previous_response_id":"resp_1"}`,
      attacker.secretLive,
    ],
  ] as const;
  for (const [path, body, key] of rows) {
    const status = await post(scene, path, bytesOf(body), key);
    if (status < 400 || status >= 500) return `${body} was answered ${status}`;
  }
  return model.requests.length === 0 ? null : "a model was asked";
}

/** Leaves a stream at its first word, before its report. */
async function leavingEarly(scene: AttackScene): Promise<string | null> {
  const { model, attacker, origin } = scene;
  const usage = { prompt_tokens: 59_000, completion_tokens: 20 };
  model.reply = (request: ModelRequest) => ({
    events: slowly(chatEvents(request.body, ["one ", "two "], usage)),
  });
  const response = await fetch(origin + CHAT, {
    method: "POST",
    headers: { authorization: `Bearer ${attacker.secretLive}` },
    body: JSON.stringify({
      model: "mini",
      user: "early",
      stream: true,
      messages: [{ role: "user", content: "Look" }],
    }),
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await reader.cancel();
  for (let looks = 0; looks < 50; looks++) {
    const { events } = await must(scene, "GET", "/events?userId=early");
    if (events.length === 0) {
      await pause(200);
      continue;
    }
    const { counters } = await must(scene, "GET", "/usage?userId=early");
    const tokens = counters.find(({ groupId }: { groupId: string }) => groupId === "lg_tokens")?.count;
    return tokens >= 59_000 ? null : `a caller who left early was charged ${tokens} tokens`;
  }
  return "a caller who left early was never charged";
}

async function* slowly(events: Iterable<string>): AsyncIterable<string> {
  for (const event of events) {
    yield event;
    await pause(100);
  }
}

export const RIGHT_ATTACKS: readonly Attack[] = [
  attempts("attempts at people, credits and closed paths", [
    closedPaths,
    personOfAnother,
    keyOfGrant,
    unpaidPacks,
    endlessTokens,
    signInFromElsewhere,
  ]),
  attempts("attempts at the gateway", [forbiddenCalls, leavingEarly], { gateway: true }),
];
