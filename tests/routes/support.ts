// What the route tests share: a service for a whole file, checks of refusals, a picture of everything that a
// user shows, and end-user tokens.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import type { Features } from "../../src/process/features.ts";
import { type Answer, startTestService, type TestApp, type TestService } from "../support/test_service.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";

/** One plan of every unit, one group that everybody fills soon, and a second plan beside it. */
export const CATALOG = {
  settings: { promptLogging: false, reservationTtlSeconds: 600 },
  models: [
    { id: "gpt", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 15 },
    { id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
  ],
  plans: [
    {
      id: "plan_pro",
      name: "Pro",
      rank: 10,
      period: { type: "monthly", anchor: "calendar" },
      limits: [
        { id: "lg_images", label: "Images", unit: "count", quota: 100, matches: [{ event: "image.*" }] },
        { id: "lg_chat", label: "Chat", unit: "tokens", quota: 1000, matches: [{ event: "chat.*" }] },
        { id: "lg_video", label: "Video", unit: "seconds", quota: 60, matches: [{ event: "video.*" }] },
        { id: "lg_budget", label: "Budget", unit: "cents", quota: 2000, matches: [{ event: "video.*" }] },
        { id: "lg_one", label: "One", unit: "count", quota: 1, matches: [{ event: "one" }] },
      ],
    },
    {
      id: "plan_team",
      name: "Team",
      rank: 20,
      period: { type: "daily", anchor: "subscription_start" },
      onPlanChange: "reset",
      limits: [{
        id: "lg_images",
        label: "Images",
        unit: "count",
        quota: 50,
        matches: [{ event: "image.*" }],
      }],
    },
  ],
};

/** A service that lives as long as the tests of a file; to be called once, at the top of the file. */
export function serviceOfFile(features: Partial<Features> = {}): TestService {
  let service: TestService | null = null;
  Deno.test.beforeAll(async () => {
    service = await startTestService(undefined, features);
  });
  Deno.test.afterEach(() => service?.retireApps());
  Deno.test.afterAll(async () => {
    await service?.close();
  });
  return new Proxy({} as TestService, {
    get: (_, name) => {
      assert.ok(service !== null, "The service has not started");
      return service[name as keyof TestService];
    },
  });
}

/** A new app with the catalog above and a subscribed user "u". */
export async function appWithUser(
  service: TestService,
  workspace: Record<string, unknown> = {},
  key: "secretLive" | "secretTest" = "secretLive",
): Promise<TestApp> {
  const app = await service.newApp(CATALOG, workspace);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }, { key: app[key] }));
  return app;
}

/** The data of an answer that must be a success. */
// deno-lint-ignore no-explicit-any -- tests look at whatever came back
export async function dataOf(promise: Promise<Answer>): Promise<any> {
  const answer = await promise;
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal(answer.body.ok, true);
  return answer.body.data;
}

/** Checks that an answer is a refusal in the envelope, with its status and code; answers its error. */
export function assertRefused(answer: Answer, status: number, code: string, note = "") {
  const { ok, error, ...rest } = answer.body;
  assert.deepEqual({ status: answer.status, code: error?.code, ok }, { status, code, ok: false }, note);
  assert.deepEqual(rest, {}, note);
  assert.equal(typeof error.message, "string", note);
  assert.ok(error.message.length > 0, note);
  return error;
}

/** Everything that a user shows: counters, subscriptions, history and the feed of the app. */
export async function pictureOf(app: TestApp, userId = "u", key = app.secretLive) {
  const options = { key };
  const id = encodeURIComponent(userId);
  return {
    usage: await dataOf(app.call("GET", `/usage?userId=${id}`, undefined, options)),
    user: await dataOf(app.call("GET", `/users/${id}`, undefined, options)),
    feed: await dataOf(app.call("GET", "/events?limit=100", undefined, options)),
  };
}

/** A new read-only key of an app. */
export async function readerKey(service: TestService, { appId }: TestApp, mode: "live" | "test" = "live") {
  const made = await dataOf(service.admin("POST", `/apps/${appId}/keys`, { class: "reader", mode }));
  return made.key as string;
}

/** A hold of some images of user "u". */
export async function holdImages(app: TestApp, count = 1, key = app.secretLive): Promise<string> {
  const body = { userId: "u", event: "image.x", count };
  const data = await dataOf(app.call("POST", "/reserve", body, { key }));
  assert.equal(data.allowed, true);
  return data.reservationId;
}

/** The count of a group of user "u". */
export async function countOf(app: TestApp, groupId: string, key = app.secretLive): Promise<number> {
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u", undefined, { key }));
  return counters.find((row: { groupId: string }) => row.groupId === groupId).count;
}

/** An end-user token over any payload. */
export function endUserToken(secret: string, payload: unknown): string {
  const first = Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload))
    .toString("base64url");
  return `${first}.${createHmac("sha256", secret).update(first).digest("base64url")}`;
}

/** What the proof of the books finds in the tables once they have everything. */
export async function driftsOf({ clock, serving, store }: TestService): Promise<string[]> {
  await serving().term.flush();
  const drifts: string[] = [];
  await reconcile(
    store.database,
    ({ userId, text }) => drifts.push(`${userId}: ${text}`),
    undefined,
    clock.now(),
  );
  return drifts;
}
