// The promise that all else rests on: never one unit over quota, whoever asks how often at once.

import assert from "node:assert/strict";
import { startTestService } from "../support/test_service.ts";

const CATALOG = {
  plans: [{
    id: "plan_a",
    name: "A",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [{ id: "lg_a", label: "Images", unit: "count", quota: 500, matches: [{ event: "image.*" }] }],
  }],
};

Deno.test("twenty parallel reserves of 75 against 500 allow exactly six", async () => {
  const service = await startTestService();
  try {
    const app = await service.newApp(CATALOG);
    await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" });
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        () => app.call("POST", "/reserve", { userId: "u", event: "image.x", count: 75 }),
      ),
    );
    assert.equal(answers.filter(({ body }) => body.data.allowed).length, 6);
    const refused = answers.filter(({ body }) => !body.data.allowed);
    assert.ok(refused.every(({ body }) => body.data.reasons[0] === "limit_reached"));
    await service.restart();
    const usage = await app.call("GET", "/usage?userId=u");
    assert.equal(usage.body.data.counters[0].count, 450);
  } finally {
    await service.close();
  }
});
