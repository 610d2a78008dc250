// Margins over the admin API: seats that pay, costs by plan, prices from the catalog alone.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const PRICED = {
  ...CATALOG,
  plans: CATALOG.plans.map((plan) => ({ ...plan, trial: { days: 5 } })),
  planPrices: { plan_pro: { amount: 2000, currency: "usd" }, plan_team: { amount: 100, currency: "eur" } },
};

async function marginsOf(app: TestApp, query = "") {
  service.clock.advance(1);
  const { plans } = await dataOf(service.admin("GET", `/apps/${app.appId}/margins?mode=live${query}`));
  return plans.map((plan: Record<string, unknown>) => [
    plan.planId,
    plan.users,
    plan.seats,
    plan.revenue,
    plan.costCents,
    plan.unpriced,
    plan.marginCents,
  ]);
}

Deno.test("a plan's margin has the seats that pay and the cost of its calls", async () => {
  const app = await service.newApp(PRICED);
  const post = (path: string, body: object) => dataOf(app.call("POST", path, body));
  await post("/subscriptions", { userId: "u", planId: "plan_pro", quantity: 3 });
  await post("/subscriptions", { userId: "v", planId: "plan_pro" });
  await post("/subscriptions", { userId: "w", planId: "plan_team" });
  await post("/subscriptions", { userId: "x", planId: "plan_pro", trial: true });
  await post("/track", { userId: "u", event: "video.veo", quantity: 2 });
  await post("/track", { userId: "v", event: "image.a", metadata: { model: "sdxl" } });
  await post("/track", { userId: "nobody", event: "video.veo", quantity: 1 });
  assert.deepEqual(await marginsOf(app), [
    ["plan_pro", 2, 4, { amount: 8000, currency: "usd" }, 80, 1, 7920],
    ["plan_team", 1, 1, { amount: 3000, currency: "eur" }, 0, 0, null],
    [null, 0, 0, null, 40, 0, null],
  ]);
  assert.deepEqual(await marginsOf(app, "&userId=u"), [
    ["plan_pro", 1, 3, { amount: 6000, currency: "usd" }, 80, 0, 5920],
    ["plan_team", 0, 0, { amount: 0, currency: "eur" }, 0, 0, null],
  ]);
  const plans = await dataOf(app.call("GET", "/plans"));
  assert.doesNotMatch(JSON.stringify(plans), /usd|eur/);
});

Deno.test("a price names a plan of the catalog", async () => {
  const { appId } = await service.newApp(PRICED);
  const faultsOf = async (planPrices: unknown) => {
    const answer = await service.admin("PUT", `/apps/${appId}/catalog`, { ...PRICED, planPrices });
    return JSON.stringify(assertRefused(answer, 400, "invalid_request").details);
  };
  assert.match(
    await faultsOf({ plan_gone: { amount: 1, currency: "usd" } }),
    /"planPrices\.plan_gone".*plan of the catalog/,
  );
  assert.match(
    await faultsOf({ plan_pro: { amount: 1.5, currency: "usd" } }),
    /"planPrices\.plan_pro\.amount"/,
  );
  assert.match(
    await faultsOf({ plan_pro: { amount: 1, currency: "USD" } }),
    /"planPrices\.plan_pro\.currency"/,
  );
});
