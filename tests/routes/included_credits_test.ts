// What HTTP adds to credits that come with a plan: where they are shown, and that stops and moves of the clock give nothing
// twice.

import assert from "node:assert/strict";
import { packOf, planOf } from "../domain/short_catalog.ts";
import { consoleOf, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const includes = [{ packId: "images", quantity: 100, rollover: { max: 150, periods: 2 } }];
const CATALOG = {
  plans: [
    planOf("plan_pro", { g: 0 }, { name: "Pro", includes }),
    planOf("plan_free", { g: 0 }, { rank: 0 }),
  ],
  packs: [packOf("images", { name: "Images" })],
};

Deno.test("credits of a plan come once for each window, through stops and moves of the clock", async () => {
  const app = await service.newApp(CATALOG);
  // deno-lint-ignore no-explicit-any -- tests read any member
  const call = (method: string, path: string, body?: object): Promise<any> =>
    dataOf(app.call(method, path, body, { key: app.secretTest }));
  const shown = async () => {
    const { credits } = await call("GET", "/credits?userId=ann");
    return credits.map((each: Record<string, unknown>) =>
      `${each.origin} ${each.remaining} of ${each.initial}`
    );
  };
  await call("POST", "/test-clock", { now: "2026-03-10T12:00:00.000Z" });
  await call("POST", "/subscriptions", { userId: "ann", planId: "plan_pro" });
  await call("POST", "/track", { userId: "ann", event: "x.a", count: 30 });
  assert.deepEqual(await shown(), ["plan 70 of 100"]);
  await service.restart();
  assert.deepEqual(await shown(), ["plan 70 of 100"]);
  await call("POST", "/test-clock", { now: "2026-05-20T00:00:00.000Z" });
  await service.restart();
  assert.deepEqual(await shown(), ["rollover 70 of 70", "plan 100 of 100", "rollover 80 of 80"]);
  await service.restart();
  await call("POST", "/credits/grant", { userId: "ann", packId: "images", quantity: 1 });
  assert.equal((await shown()).at(-1), "null 1 of 1");
  const { entries } = await call("GET", "/credits/history?userId=ann");
  assert.deepEqual(
    entries.map(({ delta, reason }: Record<string, unknown>) => `${delta} ${reason}`).sort(),
    ["-30 event_committed", "1 grant", "100 grant", "100 grant", "70 grant", "80 grant"],
  );
});

Deno.test("plans show what they include, and the console whose credits these are", async () => {
  const app = await service.newApp(CATALOG);
  const plans = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(plans.map((plan: Record<string, unknown>) => plan.includes), [includes, undefined]);
  await dataOf(app.call("POST", "/subscriptions", { userId: "ann", planId: "plan_pro" }));
  const visitor = await Visitor.signedIn(consoleOf(service));
  for (
    const [tab, words] of [
      ["", "Images with the plan 100 of 100"],
      ["/billing", "Includes 100 of Images monthly; what is left rolls over for 2 windows, up to 150"],
    ] as const
  ) {
    const { text } = await visitor.get(`/console/apps/${app.appId}/live/users/ann${tab}`);
    assert.ok(text.includes(words), `${words}: ${text}`);
  }
});

Deno.test("an answer of a catalog without included packs has no origin", async () => {
  const app = await service.newApp({ packs: CATALOG.packs });
  await dataOf(app.call("POST", "/credits/grant", { userId: "ann", packId: "images", quantity: 1 }));
  const { credits } = await dataOf(app.call("GET", "/credits?userId=ann"));
  assert.deepEqual(credits.map((each: object) => "origin" in each), [false]);
});
