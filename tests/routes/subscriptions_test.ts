// Subscriptions over HTTP: seats, and what else a call may say of them beside the plan.

import assert from "node:assert/strict";
import { dataOf, serviceOfFile } from "./support.ts";
import { planOf } from "../domain/short_catalog.ts";

const service = serviceOfFile();

Deno.test("seats multiply the quotas of the plan, and an answer shows them where there is more than one", async () => {
  const app = await service.newApp({ plans: [planOf("plan_team", { lg_a: 10 })] });
  const row = await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_team" }));
  assert.equal("quantity" in row, false);
  const seats = { userId: "u", planId: "plan_team", quantity: 3 };
  assert.equal((await dataOf(app.call("POST", "/subscriptions", seats))).quantity, 3);
  const { subscription, counters: [counter] } = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual([subscription.quantity, counter.quota, counter.remaining], [3, 30, 30]);
});
