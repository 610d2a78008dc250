// Fit over HTTP: what is asked and answered, keys, and what is refused. The rule has its tests in the domain.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const ASKED = {
  userId: "u",
  event: "chat.reply",
  metadata: { model: "gpt", place: "here" },
  inputTokens: 100,
};
const FIT = { minOutputTokens: 200, models: ["gpt-small"] };

Deno.test("a reserve is made to fit to what is left, and a repeated key gets the same answer", async () => {
  const app = await appWithUser(service);
  const asked = { ...ASKED, maxOutputTokens: 4_000, fit: FIT };
  const options = { headers: { "idempotency-key": "job_1" } };
  const held = await dataOf(app.call("POST", "/reserve", asked, options));
  assert.deepEqual([held.allowed, held.fitted], [true, { model: "gpt", maxOutputTokens: 900 }]);
  assert.equal(held.groups[0].current, 1_000);
  assert.deepEqual(await dataOf(app.call("POST", "/reserve", asked, options)), held);
  const other = { ...asked, fit: { ...FIT, minOutputTokens: 201 } };
  assertRefused(await app.call("POST", "/reserve", other, options), 409, "idempotency_conflict");
  const { allowed, reasons, fitted } = await dataOf(app.call("POST", "/reserve", asked));
  assert.deepEqual([allowed, reasons, fitted], [false, ["limit_reached"], undefined]);
  const { eventId } = await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId }));
  const event = await dataOf(app.call("GET", `/events/${eventId}`));
  assert.deepEqual(event.metadata, { model: "gpt", place: "here" });
});

Deno.test("what fit cannot mean is refused, on reserve and on calls that hold nothing", async () => {
  const app = await appWithUser(service);
  const refused: readonly (readonly [object, string])[] = [
    [{ fit: FIT }, "maxOutputTokens"],
    [{ fit: FIT, maxOutputTokens: 199 }, "fit.minOutputTokens"],
    [{ fit: FIT, maxOutputTokens: 400.5 }, "maxOutputTokens"],
    [{ fit: { minOutputTokens: 0 }, maxOutputTokens: 9 }, "fit.minOutputTokens"],
    [{ fit: { minOutputTokens: 1.5 }, maxOutputTokens: 9 }, "fit.minOutputTokens"],
    [{ fit: {}, maxOutputTokens: 9 }, "fit.minOutputTokens"],
    [{ fit: { minOutputTokens: 1, models: ["a", "a"] }, maxOutputTokens: 9 }, "fit.models"],
    [{ fit: { minOutputTokens: 1, models: Array(21).fill("a") }, maxOutputTokens: 9 }, "fit.models"],
    [{ fit: { minOutputTokens: 1, models: [7] }, maxOutputTokens: 9 }, "fit.models.0"],
    [{ fit: { minOutputTokens: 1, model: "a" }, maxOutputTokens: 9 }, "fit.model"],
  ];
  for (const [members, path] of refused) {
    const answer = await app.call("POST", "/reserve", { ...ASKED, ...members });
    assertRefused(answer, 400, "invalid_request", path);
    assert.equal(answer.body.error.details[0].path, path, JSON.stringify(answer.body));
  }
  for (const path of ["/can-use", "/explain", "/track"]) {
    const body = path === "/track" ? { ...ASKED, fit: FIT } : { ...ASKED, maxOutputTokens: 400, fit: FIT };
    assertRefused(await app.call("POST", path, body), 400, "invalid_request", path);
  }
});
