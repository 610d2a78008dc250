// Messages of Stripe for tests, made by shape as Stripe's API has it and signed by the helper of the official package.

import { Stripe } from "stripe";
import type { Answer, TestApp, TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

export const SECRET = "whsec_test_0123456789abcdef";
const START_S = Date.UTC(2026, 0, 10) / 1000;

/** A catalog with two plans and two packs that Stripe sells. */
export const STRIPE_CATALOG = {
  plans: [
    plan("plan_basic", 1, 100, ["price_basic", "price_basic_year"]),
    plan("plan_pro", 2, 1000, ["price_pro"]),
  ],
  packs: [
    {
      id: "cpk_images",
      name: "Images",
      kind: "per_type",
      stripePrices: ["price_images"],
      items: [
        { id: "cpi_small", label: "Small", unit: "count", amount: 10, matches: [{ event: "image.small" }] },
        { id: "cpi_large", label: "Large", unit: "count", amount: 2, matches: [{ event: "image.large" }] },
      ],
    },
    {
      id: "cpk_cents",
      name: "Cents",
      kind: "generic",
      unit: "cents",
      matches: [{ event: "*" }],
      stripePrices: ["price_cents"],
      items: [],
    },
  ],
};

function plan(id: string, rank: number, quota: number, stripePrices: readonly string[]) {
  const matches = [{ event: "image.*" }];
  return {
    id,
    name: id,
    rank,
    period: { type: "monthly", anchor: "subscription_start" },
    stripePrices,
    limits: [{ id: `lg_${id}`, label: id, unit: "count", quota, matches }],
  };
}

let events = 0;

/** An event of Stripe around an object. */
export function eventOf(type: string, object: object, after = 0, members: object = {}) {
  events += 1;
  return {
    id: `evt_stripe_${events}`,
    object: "event",
    api_version: "2026-01-28.clover",
    created: START_S + after,
    livemode: true,
    type,
    data: { object },
    ...members,
  };
}

/** A subscription of Stripe. */
export function subscriptionOf(members: object = {}, price = "price_basic") {
  return {
    id: "sub_stripe_1",
    object: "subscription",
    status: "active",
    start_date: START_S,
    cancel_at: null,
    ended_at: null,
    metadata: { holdfast_user: "ada" },
    items: { object: "list", data: [{ id: "si_1", price: { id: price, object: "price" }, quantity: 1 }] },
    ...members,
  };
}

/** A paid session of Stripe's checkout. */
export function sessionOf(members: object = {}) {
  return {
    id: "cs_1",
    object: "checkout.session",
    mode: "payment",
    payment_status: "paid",
    payment_intent: "pi_1",
    client_reference_id: "ada",
    metadata: { holdfast_pack: "cpk_images" },
    ...members,
  };
}

/** Sets the secret of live mode. */
export async function connect(service: TestService, app: TestApp, mode = "live"): Promise<void> {
  await dataOf(service.admin("PUT", `/apps/${app.appId}/stripe`, { mode, webhookSecret: SECRET }));
}

/** The header that signs an event at a moment. */
export async function signatureOf(event: object, secret: string, now: number): Promise<string> {
  return await Stripe.webhooks.generateTestHeaderStringAsync({
    payload: JSON.stringify(event),
    secret,
    timestamp: Math.floor(now / 1000),
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
}

export interface SendOptions {
  readonly secret?: string;
  readonly mode?: string;
  readonly appId?: string;
  /** Seconds by which the signature's time is ahead of the service's clock. */
  readonly ahead?: number;
}

/** Sends an event, signed. */
export async function send(
  service: TestService,
  app: TestApp,
  event: object,
  { secret = SECRET, mode = "live", appId = app.appId, ahead = 0 }: SendOptions = {},
): Promise<Answer> {
  const payload = JSON.stringify(event);
  const header = await signatureOf(event, secret, service.clock.now() + ahead * 1000);
  return await post(service, `/api/v1/stripe/${appId}/${mode}`, payload, { "stripe-signature": header });
}

/** Sends events to a service, signed; each must be taken, and its answer's data is returned. */
export function sender(service: TestService) {
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  return (app: TestApp, event: object, options?: SendOptions): Promise<any> =>
    dataOf(send(service, app, event, options));
}

/** Posts a body without a key. */
export async function post(
  service: TestService,
  path: string,
  body: string,
  headers: Record<string, string>,
): Promise<Answer> {
  const request = new Request(`http://localhost${path}`, { method: "POST", body, headers });
  const response = await service.http.fetch(request);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** An app that sells by prices of Stripe, with the secret of a mode set. */
export async function connectedApp(service: TestService, mode = "live"): Promise<TestApp> {
  const app = await service.newApp(STRIPE_CATALOG);
  await connect(service, app, mode);
  return app;
}
