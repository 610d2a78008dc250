// The way of the tour: which operations are called, in which order and with what. Each area builds on what the ones
// before it made.

import { send, signatureOf } from "../stripe_support.ts";
import catalog from "../../../src/tenant/demo/catalog.json" with { type: "json" };
import type { Tour } from "./tour.ts";

/** A catalog that fits on a page. */
const SMALL_CATALOG = {
  settings: { promptLogging: true },
  plans: [{
    id: "plan_starter",
    name: "Starter",
    rank: 1,
    period: { type: "monthly", anchor: "subscription_start" },
    onPlanChange: "carry",
    limits: [{
      id: "lg_images",
      label: "Images a month",
      unit: "count",
      quota: 100,
      matches: [{ event: "image.*" }],
    }],
  }],
};

/** Metering, usage, subscriptions, credits, customers, compose, events. */
export async function walkProduct(tour: Tour): Promise<void> {
  await tour.record("upsertSubscription", { body: { userId: "user_demo", planId: "Pro" } });
  await walkMetering(tour);
  await walkAccounts(tour);
  await walkUsage(tour);
  await walkRuns(tour);
  await walkCredits(tour);
  await walkAliases(tour);
  await walkCompose(tour);
  await walkFeed(tour);
}

async function walkMetering(tour: Tour): Promise<void> {
  const { record, refuse, app } = tour;
  const body = { userId: "user_demo", event: "image.render" };
  await refuse("reserve", "invalid_request", { body: { ...body, count: -1 } });
  await refuse("reserve", "invalid_key", { body, key: null });
  await refuse("reserve", "requires_secret_key", { body, key: app.publicLive });
  const other = await record("reserve", { body });
  await record("release", {
    body: { reservationId: other.reservationId, reason: "The user closed the page", errorCode: "aborted" },
  });
  const { reservationId } = await record("reserve", {
    body: { ...body, count: 2, metadata: { model: "flux-pro" }, prompt: "A lighthouse at dusk" },
  });
  await refuse("commit", "not_found", { body: { reservationId: "rsv_1_unknown" } });
  await refuse("commit", "invalid_request", { body: { reservationId, outputTokens: 120 } });
  await record("commit", {
    body: { reservationId, actual: { count: 1 }, costCents: 4.2, response: "1.png" },
  });
  await refuse("commit", "reservation_not_pending", { body: { reservationId } });
  await walkUsageOfModels(tour);
  await refuse("release", "reservation_not_pending", { body: { reservationId } });
  const reply = { userId: "user_demo", event: "chat.reply", inputTokens: 4000 };
  await refuse("track", "limit_reached", { body: { ...reply, inputTokens: 4_000_000 } });
  await record("track", { body: { ...reply, metadata: { model: "gpt-4o-mini" } } });
  await record("canUse", { body: { ...body, count: 100 } });
  await record("trackBatch", {
    body: { events: [{ ...body, idempotencyKey: "job_1" }, { ...body, count: 500 }] },
  });
  await record("explain", { body: { ...body, count: 500 } });
  const call = { call: "can-use", ...body };
  await record("batch", { body: { calls: [call, { call: "release", reservationId: "rsv_1_unknown" }] } });
}

/** The examples of reserve and commit that stay: work of a model, settled by what its server reports. */
async function walkUsageOfModels({ record }: Tour): Promise<void> {
  const { reservationId } = await record("reserve", {
    body: {
      userId: "user_demo",
      event: "chat.reply",
      metadata: { model: "gpt-4o-mini" },
      inputTokens: 1000,
      maxOutputTokens: 500,
      prompt: "Write a haiku.",
    },
  });
  const providerUsage = {
    prompt_tokens: 1000,
    completion_tokens: 120,
    total_tokens: 1120,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 64 },
  };
  await record("commit", { body: { reservationId, providerUsage, response: "Old pond..." } });
}

async function walkUsage({ record, refuse, app, token }: Tour): Promise<void> {
  await refuse("upsertSubscription", "not_found", { body: { userId: "user_demo", planId: "plan_unknown" } });
  await record("getUsage", { parameters: { userId: "user_demo", event: "image.render" } });
  const headers = { "x-end-user-token": token("user_demo") };
  await record("streamUsage", { parameters: { userId: "user_demo", event: "image.render" } });
  await record("getMyUsage", { key: app.publicLive, headers });
  await refuse("getMyUsage", "forbidden", { key: app.publicLive });
  await record("getUser", { parameters: { userId: "user_demo" } });
  const parameters = { userId: "user_demo" };
  const { userKeyId } = await record("createUserKey", { parameters, body: { name: "CI" } });
  await record("listUserKeys", { parameters });
  await record("revokeUserKey", { parameters: { ...parameters, userKeyId } });
  await refuse("revokeUserKey", "not_found", { parameters: { ...parameters, userKeyId } });
  await record("listPlans", { key: app.publicLive });
  const body = { userId: "user_trial", planId: "plan_trial", provider: "stripe", externalId: "sub_123" };
  await record("upsertSubscription", { body: { ...body, endsAt: "2026-02-15T00:00:00Z" } });
  const canceled = {
    userId: "user_trial",
    provider: "stripe",
    externalId: "sub_123",
    reason: "Chose another",
  };
  const { reason: _, ...named } = canceled;
  await record("upsertSubscription", { body: { ...named, planId: "plan_free", at: "2026-02-01T00:00:00Z" } });
  await record("unscheduleSubscription", { parameters: named });
  await refuse("unscheduleSubscription", "not_found", { parameters: named });
  await record("upsertSubscription", { body: { ...body, endsAt: "2026-02-15T00:00:00Z" } });
  await record("cancelSubscription", { parameters: canceled });
  await refuse("cancelSubscription", "already_canceled", { parameters: canceled });
}

async function walkRuns({ record, refuse }: Tour): Promise<void> {
  const limits = [{ unit: "cents", quota: 50 }, { unit: "count", quota: 20, event: "image.*" }];
  const body = { userId: "user_demo", name: "Market report", limits, ttlSeconds: 600, metadata: { job: 7 } };
  const { runId } = await record("createRun", { body });
  await record("getRun", { parameters: { runId } });
  await refuse("getRun", "not_found", { parameters: { runId: "run_unknown" } });
  await record("listRuns", { parameters: { userId: "user_demo", status: "active" } });
  await record("endRun", { parameters: { runId }, body: { reason: "done" } });
  await refuse("endRun", "run_ended", { parameters: { runId }, body: {} });
}

async function walkCredits({ record, refuse }: Tour): Promise<void> {
  const body = { userId: "user_demo", packId: "Image Top-Up", externalRef: "order_1" };
  const { balanceId } = await record("grantCredits", { body: { ...body, notes: "Spring sale" } });
  await refuse("grantCredits", "credit_pack_not_found", { body: { ...body, packId: "cpk_unknown" } });
  await record("listCredits", { parameters: { userId: "user_demo", event: "image.render" } });
  const later = { expiresAt: "2027-12-31T00:00:00Z", reason: "They were ill" };
  const bundle = await record("grantCredits", { body: { userId: "user_demo", packId: "Creator Bundle" } });
  await record("extendCredits", { body: { balanceId: bundle.balanceId, ...later } });
  await refuse("extendCredits", "credit_balance_not_found", {
    body: { balanceId: "crb_1_unknown", ...later },
  });
  await record("revokeCredits", { body: { balanceId, reason: "The order was refunded" } });
  await refuse("revokeCredits", "credit_balance_not_found", { body: { balanceId: "crb_1_unknown" } });
  await record("listLedger", { parameters: { userId: "user_demo", limit: "2" } });
}

async function walkAccounts({ record, refuse, app }: Tour): Promise<void> {
  await record("upsertSubscription", { body: { userId: "acme", planId: "Organisation" } });
  await record("setParent", { parameters: { userId: "research" }, body: { parentId: "acme" } });
  const memberLimits = { lg_org_images: { quota: 20 } };
  await record("setParent", {
    parameters: { userId: "user_member" },
    body: { parentId: "research", memberLimits },
  });
  const parameters = { userId: "acme" };
  await refuse("setParent", "parent_cycle", { parameters, body: { parentId: "user_member" } });
  await record("listChildren", { parameters });
  await app.call("POST", "/track", { userId: "user_member", event: "image.render", count: 3, costCents: 12 });
  await record("listMembers", { parameters: { ...parameters, groupId: "lg_org_images" } });
}

async function walkAliases({ record, refuse }: Tour): Promise<void> {
  const pair = { from: "anon_7f3a", to: "user_demo" };
  await record("aliasCustomer", { body: { ...pair, consentGiven: true } });
  await refuse("aliasCustomer", "alias_conflict", { body: { ...pair, to: "user_other" } });
  await refuse("aliasCustomer", "alias_cycle", { body: { from: "user_demo", to: "user_demo" } });
  const pairs = [{ from: "old_1", to: "user_1" }, { from: "user_2", to: "user_2" }];
  await record("aliasCustomers", { body: { pairs, dryRun: true } });
  await record("getCustomer", { parameters: { id: "anon_7f3a" } });
}

async function walkCompose({ record, refuse }: Tour): Promise<void> {
  const body = { type: "usage-recap", userId: "user_demo" };
  await record("compose", { body: { ...body, vars: { name: "Ada", language: "English" } } });
  await refuse("compose", "invalid_request", { body });
  await refuse("compose", "not_found", { body: { ...body, type: "unknown" } });
}

async function walkFeed({ record, refuse }: Tour): Promise<void> {
  const parameters = { userId: "user_demo", eventType: "image.render", limit: "2" };
  const { events } = await record("listEvents", { parameters });
  await record("listRefusals", { parameters: { userId: "user_demo", limit: "2" } });
  await record("getEvent", { parameters: { eventId: events[0].id } });
  await refuse("getEvent", "not_found", { parameters: { eventId: "evt_unknown" } });
}

/** People, consent, export, erasure, and the clock of test mode. */
export async function walkPrivacy({ record, refuse, app }: Tour): Promise<void> {
  const distinctId = "user_demo";
  await record("capture", { body: { distinctId, event: "page.viewed", properties: { path: "/pricing" } } });
  await record("identify", {
    body: { distinctId, properties: { name: "Ada" }, propertiesOnce: { firstSeen: "2026-01-15" } },
  });
  await refuse("identify", "consent_required", { body: { distinctId, mergeAnonymousId: "anon_81c0" } });
  await record("aliasPerson", { body: { distinctId, alias: "ada@example.com" } });
  await refuse("aliasPerson", "alias_cycle", { body: { distinctId, alias: distinctId } });
  await record("optOut", { body: { distinctId, scope: "ai_personalization" } });
  await record("isOptedOut", { parameters: { distinctId, scope: "ai_personalization" } });
  await record("optIn", { body: { distinctId, scope: "ai_personalization" } });
  const { downloadUrl } = await record("exportPerson", { body: { distinctId } });
  const token = new URL(downloadUrl).searchParams.get("token") ?? "";
  await record("downloadExport", { parameters: { token }, key: null });
  await refuse("downloadExport", "invalid_or_expired_token", { parameters: { token: "wrong" }, key: null });
  const { jobId } = await record("deletePerson", { body: { distinctId: "user_gone" } });
  await record("sweep");
  await record("getDeletionStatus", { parameters: { jobId } });
  await refuse("getDeletionStatus", "not_found", { parameters: { jobId: "job_unknown" } });
  const key = app.secretTest;
  await record("getTestClock", { key });
  await record("moveTestClock", { key, body: { advanceSeconds: 86_400 } });
  await refuse("moveTestClock", "forbidden", { body: { advanceSeconds: 86_400 } });
}

/** Users of the app that the other calls were about. */
async function walkUsers({ record, refuse, app }: Tour): Promise<void> {
  const parameters = { appId: app.appId, mode: "live" };
  const body = { userId: "user_demo", event: "image.render" };
  const { reservationId } = await record("reserve", { body });
  await record("listUsers", { parameters: { ...parameters, startsWith: "user_", limit: "2" } });
  await record("listHolds", { parameters: { ...parameters, userId: "user_demo" } });
  await record("listCoveredIds", { parameters: { ...parameters, userId: "user_demo" } });
  await record("findPersonLinks", { parameters });
  await record("lookUpId", { parameters: { ...parameters, id: reservationId } });
  for (const operation of ["listUsers", "lookUpId"]) {
    await refuse(operation, "not_found", {
      parameters: { ...parameters, appId: "app_unknown", id: "user_1" },
    });
  }
}

/** Workspaces, apps, keys, catalogs; the pages of the process. */
export async function walkAdministration(tour: Tour): Promise<void> {
  const { record, refuse, app, service } = tour;
  await refuse("listWorkspaces", "invalid_key", { key: "wrong" });
  const { workspaceId } = await record("createWorkspace", { body: { name: "Acme", operationCap: 100_000 } });
  await record("changeWorkspace", { parameters: { workspaceId }, body: { aiBudgetCents: 5000 } });
  await record("listWorkspaces");
  const { appId } = await record("createApp", { body: { name: "shop", workspaceId } });
  await record("listApps");
  await record("getApp", { parameters: { appId } });
  await refuse("getApp", "not_found", { parameters: { appId: "app_unknown" } });
  const made = await record("createKey", {
    parameters: { appId },
    body: { class: "public", mode: "test", name: "Shop page" },
  });
  await record("rollKey", { parameters: { appId, keyId: made.keyId }, body: { keepOldSeconds: 3600 } });
  await record("revokeKey", { parameters: { appId, keyId: made.keyId } });
  await record("listKeys", { parameters: { appId } });
  await record("rotateIdentitySecret", { parameters: { appId }, body: { keepOldSeconds: 3600 } });
  await walkUsers(tour);
  await walkWebhooks(tour, appId);
  const faulty = { ...SMALL_CATALOG, plans: [{ ...SMALL_CATALOG.plans[0], rank: "best" }] };
  await refuse("applyCatalog", "invalid_request", { parameters: { appId }, body: faulty });
  await record("applyCatalog", { parameters: { appId, dryRun: "false" }, body: SMALL_CATALOG });
  await record("getCatalog", { parameters: { appId } });
  await record("listCatalogVersions", { parameters: { appId } });
  await record("getCatalogVersion", { parameters: { appId, version: "1" } });
  const tried = { ...SMALL_CATALOG, settings: { promptLogging: false } };
  await service.admin("PUT", `/apps/${appId}/catalog?mode=test`, tried);
  await record("promoteCatalog", { parameters: { appId }, body: { expectedVersion: 2 } });
  await record("dropCatalog", { parameters: { appId, mode: "test" } });
  await walkStripe(tour);
  const lessPlans = { ...catalog, plans: catalog.plans.filter(({ id }) => id !== "plan_pro") };
  await refuse("applyCatalog", "catalog_in_use", { parameters: { appId: app.appId }, body: lessPlans });
  await record("moveHistory");
  service.clock.advance(1);
  const headers = { "x-request-id": "req_1" };
  await app.call("POST", "/track", { userId: "user_demo", event: "image.render", count: 0 }, { headers });
  await record("listRequests", { parameters: { appId: app.appId, requestId: "req_1" } });
  const stranger = { key: "sk_live_Unknown0123456789" };
  await app.call("GET", "/plans", undefined, stranger);
  await record("listUnknownKeys");
  await record("listAudit", { parameters: { appId, limit: "2" } });
  const range = { from: "2026-01-15", to: "2026-01-15" };
  await record("listDailyUse", { parameters: { appId: app.appId, mode: "live", by: "event", ...range } });
  await record("listMargins", { parameters: { appId: app.appId, mode: "live" } });
  await walkFeatures(tour);
  await walkTopUps(tour);
  await walkOverage(tour);
  await record("getHome", { key: null });
  await record("getHealth", { key: null });
  await record("getReadiness", { key: null });
}

const RATES = [
  { event: "image.*", perImage: 5 },
  { event: "chat.*", perMillionInputTokens: 200, perMillionOutputTokens: 800 },
];

/** Last, since every answer about a user has its features from here on, and that of a call its credits. */
async function walkFeatures({ record, refuse, app, service }: Tour): Promise<void> {
  const features = { sso: true, seats: 5, models: ["gpt-4o-mini", "flux-pro"] };
  const plans = catalog.plans.map((plan) => plan.id === "plan_pro" ? { ...plan, features } : plan);
  const featured = { ...catalog, rates: RATES, featureDefaults: { sso: false, support: "mail" }, plans };
  await service.admin("PUT", `/apps/${app.appId}/catalog`, featured);
  await record("listRates", { key: app.publicLive });
  await record("listFeatures", { parameters: { userId: "user_demo" } });
  await record("getFeature", { parameters: { userId: "user_demo", key: "sso" } });
  await refuse("getFeature", "not_found", { parameters: { userId: "user_demo", key: "ssso" } });
}

/** Stripe is not there: what is made stays open. */
async function walkTopUps({ record, refuse, app, service }: Tour): Promise<void> {
  const price = { amount: 500, currency: "eur" };
  const packs = catalog.packs.map((pack) => pack.id === "cpk_image_topup" ? { ...pack, price } : pack);
  await service.admin("PUT", `/apps/${app.appId}/catalog`, { ...catalog, packs });
  const off = { userId: "user_demo" };
  const card = { stripeCustomerId: "cus_a1b2c3", stripePaymentMethodId: "pm_1QxYz" };
  const body = { packId: "Image Top-Up", below: 5, maxPerMonth: 5000, ...card };
  await refuse("getTopUp", "not_found", { parameters: off });
  await refuse("putTopUp", "credit_pack_not_found", {
    parameters: off,
    body: { ...body, packId: "cpk_unknown" },
  });
  await record("putTopUp", { parameters: off, body: { ...body, enabled: false } });
  await record("getTopUp", { parameters: off });
  await record("deleteTopUp", { parameters: off });
  await service.http.fetch(
    new Request(`http://service.test/api/v1/users/user_topup/top-up`, {
      method: "PUT",
      headers: { authorization: `Bearer ${app.secretLive}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
  await record("listTopUps", { parameters: { userId: "user_topup" } });
}

/** A group that sells past its quota. */
async function walkOverage({ record, refuse, app, service }: Tour): Promise<void> {
  const plans = catalog.plans.map((plan) => {
    if (plan.id !== "plan_pro") return plan;
    const limits = plan.limits.map((limit) =>
      limit.id === "lg_pro_video" ? { ...limit, overage: { max: 600 } } : limit
    );
    return { ...plan, limits };
  });
  await service.admin("PUT", `/apps/${app.appId}/catalog`, { ...catalog, plans });
  await record("setSpendCap", { body: { userId: "user_demo", groupId: "lg_pro_video", max: 120 } });
  await refuse("setSpendCap", "invalid_request", {
    body: { userId: "user_demo", groupId: "lg_pro_images", max: 1 },
  });
  await app.call("POST", "/track", { userId: "user_demo", event: "video.render", quantity: 75 });
  await record("listOverage", { parameters: { userId: "user_demo" } });
}

async function walkStripe({ record, refuse, app, service }: Tour): Promise<void> {
  const { appId } = app;
  const secret = "whsec_0123456789abcdef";
  const parameters = { appId, mode: "live" };
  await refuse("setStripe", "invalid_request", {
    parameters: { appId },
    body: { mode: "live", webhookSecret: "" },
  });
  await record("setStripe", { parameters: { appId }, body: { mode: "live", webhookSecret: secret } });
  const session = {
    id: "cs_live_a1b2c3",
    object: "checkout.session",
    mode: "payment",
    payment_status: "paid",
    payment_intent: "pi_3QxYz",
    metadata: { holdfast_user: "user_paying", holdfast_pack: "Image Top-Up" },
  };
  const body = {
    id: "evt_1QxYz",
    object: "event",
    type: "checkout.session.completed",
    created: Math.floor(service.clock.now() / 1000),
    livemode: true,
    data: { object: session },
  };
  const headers = { "stripe-signature": await signatureOf(body, secret, service.clock.now()) };
  await record("receiveStripeMessage", { parameters, body, headers, key: null });
  const wrong = { "stripe-signature": "t=1,v1=00" };
  await refuse("receiveStripeMessage", "invalid_key", { parameters, body, headers: wrong, key: null });
  await record("getStripe", { parameters: { appId } });
  const cost = { payment_intent: "pi_3QyAb", amount_total: 1900, currency: "usd" };
  const unsold = { ...session, ...cost, id: "cs_live_d4e5f6", metadata: {} };
  const unhandled = { ...body, id: "evt_1QyAb", data: { object: unsold } };
  await send(service, app, unhandled, { secret });
  await record("listUnhandledStripe", { parameters });
  await record("listUserStripe", { parameters: { ...parameters, userId: "user_1" } });
  await record("retryUnhandledStripe", { parameters: { appId, eventId: unhandled.id } });
  await record("deleteStripe", { parameters });
}

async function walkWebhooks({ record, refuse, service, receiverUrl }: Tour, appId: string): Promise<void> {
  const body = { url: `${receiverUrl}/holdfast`, mode: "live", events: ["usage.*", "credits.low"] };
  await refuse("createWebhook", "invalid_request", {
    parameters: { appId },
    body: { ...body, events: ["credit.low"] },
  });
  const { webhookId } = await record("createWebhook", { parameters: { appId }, body });
  const parameters = { appId, webhookId };
  await record("changeWebhook", { parameters, body: { description: "Mails who is about to run out" } });
  await record("rotateWebhookSecret", { parameters });
  const { messageId } = await record("pingWebhook", { parameters });
  const path = `/apps/${appId}/webhooks/${webhookId}/messages`;
  while ((await service.admin("GET", path)).body.data.messages[0].status === "pending") {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await record("redeliverMessage", { parameters: { ...parameters, messageId } });
  await record("listAttempts", { parameters: { ...parameters, messageId } });
  await record("redeliverMessages", { parameters, body: { status: "failed" } });
  await record("listWebhooks", { parameters: { appId } });
  await record("listMessages", { parameters: { ...parameters, status: "delivered", limit: "2" } });
  await refuse("listMessages", "not_found", { parameters: { appId, webhookId: "whk_unknown" } });
  await service.admin("PATCH", `/apps/${appId}/webhooks/${webhookId}`, { disabled: true });
  await refuse("pingWebhook", "invalid_request", { parameters });
  await record("deleteWebhook", { parameters });
}
