// Credits in the console: the rate card beside the catalog, and what events and days cost in credits.

import assert from "node:assert/strict";
import { consoleOf, Visitor } from "./console_support.ts";
import { appWithUser, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const RATES = [
  { event: "image.*", metadata: { size: "large" }, perImage: 12, minimum: 0.25 },
  { event: "chat", perMillionInputTokens: 200, perMillionOutputTokens: 800 },
];

Deno.test("the page of the catalog has the rate card, those of events and usage have credits", async () => {
  const app = await service.newApp({ ...CATALOG, rates: RATES });
  const visitor = await Visitor.signedIn(consoleOf(service));
  const base = `/console/apps/${app.appId}/live`;
  const { text } = await visitor.get(`${base}/catalog`);
  assert.match(text, /image\.\* size: large 12 credits an image, at least 0\.25 credits/);
  assert.match(text, /chat any 200 credits a million input tokens, 800 credits a million output tokens/);
  const call = { userId: "u", event: "image.a", metadata: { size: "large" }, count: 2 };
  const { eventId } = await dataOf(app.call("POST", "/track", call));
  await dataOf(app.call("POST", "/track", { userId: "u", event: "other" }));
  assert.match((await visitor.get(`${base}/events`)).text, /Cost Credits Status .* other 1 \$0\.00 none/);
  assert.match((await visitor.get(`${base}/events/${eventId}`)).text, /Credits 24/);
  assert.match((await visitor.get(`${base}/usage`)).text, /credits/);
});

Deno.test("without rates the pages have no credits", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.a" }));
  const visitor = await Visitor.signedIn(consoleOf(service));
  const base = `/console/apps/${app.appId}/live`;
  assert.doesNotMatch((await visitor.get(`${base}/catalog`)).text, /million input tokens/);
  assert.match((await visitor.get(`${base}/events`)).text, /Cost Status/);
});
