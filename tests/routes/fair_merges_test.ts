// On the store with one connection, batches of merges of one tenant leave room for the calls of others between their steps.

import assert from "node:assert/strict";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

Deno.test("many batches of merges at once do not hold up the calls of another tenant", async () => {
  if (service.store.database.kind !== "embedded") return;
  const [busy, other] = [await appWithUser(service), await appWithUser(service)];
  const batches = Array.from(
    { length: 12 },
    (_, batch) =>
      Array.from({ length: 3 }, (_, pair) => ({ from: `from-${batch}-${pair}`, to: `to-${batch}` })),
  );
  for (const pairs of batches) {
    const events = pairs.flatMap(({ from }) =>
      Array.from({ length: 10 }, () => ({ userId: from, event: "image.x" }))
    );
    await dataOf(busy.call("POST", "/track/batch", { events }));
  }
  let running = batches.length;
  const merged = batches.map((pairs) =>
    dataOf(busy.call("POST", "/customers/alias/batch", { pairs })).finally(() => running -= 1)
  );
  let answered = 0;
  while (running > 0) {
    // A request arrives by the event loop.
    await new Promise((resolve) => setTimeout(resolve, 0));
    await dataOf(other.call("POST", "/track", { userId: `new-${answered}`, event: "image.x" }));
    answered += 1;
  }
  for (const { results } of await Promise.all(merged)) {
    assert.ok(results.every((one: { ok: boolean }) => one.ok));
  }
  const merges = batches.flat().length;
  assert.ok(answered >= merges / 2, `only ${answered} calls were answered during ${merges} merges`);
});
