// A later expiry of a balance over HTTP: what survives a restart. Which expiries are taken is in tests/domain/credits.

import assert from "node:assert/strict";
import { newCustomer } from "./credits_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const DAY_MS = 24 * 3_600_000;

const inDays = (days: number) => new Date(service.clock.now() + days * DAY_MS).toISOString();

Deno.test("an extended balance keeps its expiry over a restart, also if it had expired before", async () => {
  const u = await newCustomer(service);
  const { balanceId } = await u.grant("cpk_wallet", { quantity: 3, expiresAt: inDays(1) });
  service.clock.advance(2 * DAY_MS);
  await service.restart();
  const extend = (expiresAt: unknown) =>
    u.app.call("POST", "/credits/extend", { balanceId, expiresAt, reason: "was ill" });
  const expiresAt = inDays(3);
  assert.deepEqual(await dataOf(extend(expiresAt)), { balanceId, remaining: 3, expiresAt });
  await service.restart();
  const [balance] = (await dataOf(u.app.call("GET", `/credits?userId=${u.userId}`))).credits;
  assert.deepEqual([balance.status, balance.expiresAt], ["active", expiresAt]);
  assertRefused(await extend(inDays(2)), 400, "invalid_request");
  assertRefused(await extend(undefined), 400, "invalid_request");
  const { entries } = await dataOf(u.app.call("GET", `/credits/history?userId=${u.userId}`));
  const [entry] = entries;
  assert.deepEqual([entry.delta, entry.reason, entry.notes], [0, "admin_adjust", "was ill"]);
});
