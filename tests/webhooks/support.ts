// A service with webhooks and whatever makes their attempts: the real thread against real servers, or a transport that a
// test scripts.

import { makeIdSource } from "../../src/process/id_source.ts";
import type { Features } from "../../src/process/features.ts";
import type { Service, Serving } from "../../src/cluster/service.ts";
import type { Webhook } from "../../src/storage/rows/registry_rows.ts";
import type { Attempt, AttemptResult, Transport } from "../../src/webhooks/transport.ts";
import {
  ADMIN_TOKEN,
  type Answer,
  ManualClock,
  newApp,
  send,
  startProcess,
  TEST_FEATURES,
  type TestApp,
} from "../support/test_service.ts";
import { openTestStore, type TestStore } from "../support/test_store.ts";

/** The secret that signs in these tests. */
export const SECRET = `whsec_${new Uint8Array(32).fill(7).toBase64()}`;

/** A catalog with a pack that any user may be granted. */
export const CATALOG = {
  plans: [{
    id: "plan_free",
    name: "Free",
    rank: 0,
    period: { type: "monthly", anchor: "calendar" },
    onPlanChange: "block",
    limits: [{ id: "lg_images", label: "Images", unit: "count", quota: 9, matches: [{ event: "image.*" }] }],
  }],
  packs: [{
    id: "pack",
    name: "Pack",
    kind: "per_type",
    defaultExpiryDays: null,
    unit: "count",
    matches: [{ event: "image.*" }],
    items: [],
  }],
};

/** A service of a test; it stops with its scope, or by `close`. */
export interface SendingService extends AsyncDisposable {
  readonly store: TestStore;
  readonly clock: ManualClock;
  readonly service: Service;
  readonly app: TestApp;
  serving(): Serving;
  /** Adds a webhook, or changes one. */
  put(webhookId: string, values?: Partial<Webhook>): Promise<Webhook>;
  /** Every message, in the order in which they were recorded. */
  messages(): Promise<MessageRow[]>;
  admin(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Ends the term as a crash would. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** A message as the table has it. */
export interface MessageRow {
  readonly id: string;
  readonly webhook_id: string;
  readonly user_key: number | null;
  readonly type: string;
  readonly body: string;
  readonly status: string;
  readonly attempts: number;
  readonly failures: number;
  readonly next_attempt_at_ms: number;
  readonly last_status: number | null;
  readonly last_error: string | null;
}

/** Starts a service with an app. */
export async function startSending(
  transport?: Transport,
  features: Partial<Features> = {},
): Promise<SendingService> {
  const store = await openTestStore();
  const clock = new ManualClock(Date.now());
  const { service, http } = await startProcess({
    store,
    clock,
    ids: makeIdSource(clock),
    features: { ...TEST_FEATURES, allowsPrivateWebhooks: true, ...features },
    ...transport === undefined ? {} : { transport },
  });
  const serving = () => {
    if (service.serving === null) throw new Error("The service does not serve");
    return service.serving;
  };
  const admin = (method: string, path: string, body?: unknown) =>
    send(http, method, `/api/admin/v1${path}`, body, { key: ADMIN_TOKEN });
  const app = await newApp(http, admin, CATALOG, {});
  const close = async () => {
    await service.stop();
    await store.close();
  };
  return {
    store,
    clock,
    service,
    app,
    serving,
    admin,
    async put(webhookId, values = {}) {
      const { changes, registry } = serving();
      const { appId } = app;
      const webhook: Webhook = {
        webhookId,
        appId,
        mode: "live",
        url: "https://hooks.test/",
        events: ["*"],
        description: null,
        disabled: false,
        secrets: [{ secret: SECRET, validUntil: null }],
        createdAt: clock.now(),
        removed: false,
        ...registry.apps.get(appId)?.webhooks.get(webhookId),
        ...values,
      };
      await changes.change(null, () => ({ rows: { webhooks: [webhook] }, answer: null }));
      return webhook;
    },
    async messages() {
      await serving().term.flush();
      return await store.database.query<MessageRow>("select * from webhook_messages order by id");
    },
    async crash() {
      serving().term.fail(new Error("A test ended the term"));
      await service.ready();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Grants some credits to a user, which records a message. */
export async function grant(app: TestApp, userId: string, externalRef: string): Promise<void> {
  const answer = await app.call("POST", "/credits/grant", {
    userId,
    packId: "pack",
    quantity: 1,
    externalRef,
  });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
}

/** A transport whose attempts a test answers. */
export class ScriptedTransport implements Transport {
  /** Every attempt, in the order in which they were made. */
  readonly attempts: Attempt[] = [];
  /** The result of an attempt. */
  answer: (attempt: Attempt, signal: AbortSignal) => AttemptResult | Promise<AttemptResult> = () => OK;

  attempt(attempt: Attempt, signal: AbortSignal): Promise<AttemptResult> {
    this.attempts.push(attempt);
    return Promise.race([
      new Promise<AttemptResult>((resolve) => resolve(this.answer(attempt, signal))),
      new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    ]);
  }

  close(): void {}

  /** The ids of attempted messages of a type or reference. */
  idsOf(text: string): string[] {
    return this.attempts.filter(({ body }) => body.includes(text)).map(({ messageId }) => messageId);
  }
}

export const OK: AttemptResult = { status: 200, fault: null };
export const BROKEN: AttemptResult = { status: 500, fault: "answered 500" };

/** Waits until a condition holds, for at most a minute. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!await condition()) {
    if (performance.now() > deadline) throw new Error(`Not within a minute: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
