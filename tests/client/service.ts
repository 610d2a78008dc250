// The service of this folder's tests, with a model server: one for all of them, since starting one takes seconds.

import assert from "node:assert/strict";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import { ModelServer } from "../support/model_server.ts";
import { startTestService, type TestService } from "../support/test_service.ts";

/** The demo's catalog, with features. */
export const FEATURED = {
  ...catalog,
  featureDefaults: { sso: false, support: "mail" },
  packs: catalog.packs.map((pack) =>
    pack.items.length === 1 ? { ...pack, price: { amount: 500, currency: "eur" } } : pack
  ),
  plans: catalog.plans.map((plan) =>
    plan.id === "plan_pro" ? { ...plan, features: { sso: true, seats: 5 } } : plan
  ),
};

/** Stripe has no customers here: a top-up that needs it fails, and nothing is called in a test without one. */
export const KEYS = {
  byMode: { live: new Map<string, string>(), test: new Map<string, string>() },
  base: "http://127.0.0.1:9",
};

/** A service with a model server that lives as long as the tests of a file; to be called once, at the top of the file. */
export function serviceWithModels(): TestService {
  let started: { readonly service: TestService; readonly models: ModelServer } | null = null;
  Deno.test.beforeAll(async () => {
    const models = new ModelServer();
    const modelServer = { apiKey: "sk-model-0123456789", baseUrl: models.baseUrl };
    started = { models, service: await startTestService(undefined, { modelServer, stripe: KEYS }) };
  });
  Deno.test.afterAll(async () => {
    await started?.service.close();
    await started?.models.close();
  });
  return new Proxy({} as TestService, {
    get: (_, name) => {
      assert.ok(started !== null, "The service has not started");
      return started.service[name as keyof TestService];
    },
  });
}

/** The running service; for use within tests alone. */
export const service = serviceWithModels();
