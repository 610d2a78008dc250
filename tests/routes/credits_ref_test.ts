// Grants that must not happen twice, or not at all: a known externalRef answers with what it issued, whatever
// happened since, and the sandbox cap bounds how many balances test mode may issue.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { applyCatalog, catalogWithPack, Customer, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();

Deno.test("a known externalRef issues nothing; without one every call grants anew", async () => {
  const u = await newCustomer(service);
  const first = await u.grant("cpk_bundle", { externalRef: "order-1" });
  for (let call = 0; call < 3; call++) {
    assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  }
  assert.deepEqual(await u.grant("creator bundle", { externalRef: "order-1" }), first, "by name");
  assert.equal((await u.credits()).length, 2);
  assert.equal((await u.ledger()).length, 2);
  const ids = new Set<string>();
  for (let call = 0; call < 3; call++) ids.add((await u.grant("cpk_bundle")).balanceId);
  assert.equal(ids.size, 3);
  assert.equal((await u.credits()).length, 8);
});

Deno.test("a ref is exact, and of its user and pack", async () => {
  const u = await newCustomer(service);
  const v = new Customer(u.app, "v");
  const ids = new Set<string>();
  for (const externalRef of ["r", "R", "r ", "__proto__", "é", "e\u0301"]) {
    ids.add(await u.fund("cpk_wallet", 1, { externalRef }));
    ids.add(await u.fund("cpk_count", 1, { externalRef }));
    ids.add(await v.fund("cpk_wallet", 1, { externalRef }));
  }
  assert.equal(ids.size, 18);
  assert.equal((await u.credits()).length, 12);
});

Deno.test("fifty parallel grants under one ref issue one set of balances", async () => {
  const u = await newCustomer(service);
  const calls = Array.from(
    { length: 50 },
    (_, index) =>
      u.grant(index % 2 === 0 ? "cpk_bundle" : "CREATOR BUNDLE", { externalRef: "order-1", quantity: index }),
  );
  const answers = await Promise.all(calls);
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
  assert.equal((await u.credits()).length, 2);
  assert.equal((await u.ledger()).length, 2);
  await u.audit();
});

Deno.test("a known ref answers across a restart, before and after the rows are in the tables", async () => {
  const u = await newCustomer(service);
  const first = await u.grant("cpk_bundle", { externalRef: "order-1" });
  await service.restart();
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  await service.serving().term.flush();
  await service.restart();
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  const parallel = Array.from({ length: 20 }, () => u.grant("cpk_bundle", { externalRef: "order-1" }));
  for (const answer of await Promise.all(parallel)) assert.deepEqual(answer, first);
  assert.equal((await u.credits()).length, 2);
});

Deno.test("a known ref answers with the balances as they are now, used up, revoked or expired", async () => {
  const u = await newCustomer(service, { mode: "test", planId: null });
  const members = { externalRef: "order-1" };
  const { expiresAt, balances } = await u.grant("cpk_bundle", members);
  const [images, video] = balances;
  const remaining = async () =>
    (await u.grant("cpk_bundle", members)).balances.map((row: { remaining: number }) => row.remaining);
  await u.hold("image.render", { count: 4, metadata: { model: "flux" } });
  assert.deepEqual(await remaining(), [6, 5]);
  await u.hold("image.render", { count: 6, metadata: { model: "flux" } });
  assert.deepEqual(await remaining(), [0, 5]);
  await u.post("/credits/revoke", { balanceId: video.balanceId });
  assert.deepEqual(await remaining(), [0, 0]);
  await u.pass(91 * 86_400);
  const last = await u.grant("cpk_bundle", { ...members, expiresAt: null, quantity: "x" });
  assert.deepEqual(last.balances.map((row: { balanceId: string }) => row.balanceId), [
    images.balanceId,
    video.balanceId,
  ]);
  assert.deepEqual([last.expiresAt, last.balanceId, last.remaining], [expiresAt, images.balanceId, 10]);
  assert.equal((await u.credits({ includeExpired: true })).length, 2);
});

Deno.test("a known ref answers before every other check but those of the members' form", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 1 } });
  const members = { packId: "cpk_wallet", externalRef: "order-1" };
  const first = await u.post("/credits/grant", { ...members, quantity: 5 });
  const again = (change: object) => u.ask("POST", "/credits/grant", { ...members, ...change });
  const changes: object[] = [
    {},
    { quantity: 0 },
    { quantity: -1 },
    { quantity: 9, source: "manual", notes: "n" },
    { quantity: 5, expiresAt: "2020-01-01" },
    { expiresAt: null },
  ];
  for (const change of changes) {
    assert.deepEqual(await dataOf(again(change)), first, JSON.stringify(change));
  }
  for (const change of [{ source: "gift" }, { notes: 5 }, { expiresAt: "soon" }, { userId: "" }]) {
    assertRefused(await again(change), 400, "invalid_request", JSON.stringify(change));
  }
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", { archived: true }));
  assert.deepEqual(await dataOf(again({})), first, "archived");
  assert.deepEqual(await dataOf(again({ packId: "WALLET" })), first, "archived, by name");
  await u.post("/credits/revoke", { balanceId: first.balanceId });
  await service.restart();
  assert.deepEqual(await dataOf(again({})), { ...first, ...zeroed(first) }, "revoked");
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", null));
  assert.deepEqual(await dataOf(again({})), { ...first, ...zeroed(first) }, "removed");
  assertRefused(await again({ externalRef: "order-2" }), 404, "credit_pack_not_found");
});

/** A grant's answer with nothing left. */
function zeroed({ balances }: { balances: object[] }) {
  return { remaining: 0, balances: balances.map((row) => ({ ...row, remaining: 0 })) };
}

Deno.test("a ref answers for the items that were granted, also when the pack has others by now", async () => {
  const u = await newCustomer(service);
  const first = await u.grant("cpk_bundle", { externalRef: "order-1" });
  const item = { id: "cpi_new", label: "New", unit: "count", amount: 1, matches: [{ event: "new" }] };
  await applyCatalog(service, u.app, catalogWithPack("cpk_bundle", { items: [item] }));
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  assert.equal((await u.grant("cpk_bundle", { externalRef: "order-2" })).balances[0].packItemId, "cpi_new");
});

/** Restarts the service when everything is in the tables. */
async function restartDrained(): Promise<void> {
  await service.serving().term.flush();
  await service.restart();
}

Deno.test("after a restart a ref answers with all balances of the grant, also when one was revoked", async () => {
  const u = await newCustomer(service);
  const members = { externalRef: "order-1" };
  const [images, video] = (await u.grant("cpk_bundle", members)).balances;
  await u.post("/credits/revoke", { balanceId: images.balanceId });
  const expected = [{ ...images, remaining: 0 }, video];
  assert.deepEqual((await u.grant("cpk_bundle", members)).balances, expected);
  for (const _ of [1, 2]) {
    await restartDrained();
    const data = await u.grant("cpk_bundle", members);
    assert.deepEqual(data.balances, expected);
    assert.deepEqual([data.balanceId, data.remaining], [images.balanceId, 0]);
  }
});

Deno.test("after a restart a ref issues nothing again where another pack has live balances of the same ref", async () => {
  const u = await newCustomer(service);
  const expiresAt = new Date(service.clock.now() + 1000).toISOString();
  const grants: [packId: string, members: object][] = [
    ["cpk_wallet", { externalRef: "r", quantity: 5 }],
    ["cpk_first", { externalRef: "r", quantity: 5, expiresAt }],
    ["cpk_count", { externalRef: "r", quantity: 5 }],
  ];
  const ids: string[] = [];
  for (const [packId, members] of grants) ids.push((await u.grant(packId, members)).balanceId);
  await u.post("/credits/revoke", { balanceId: ids[0] });
  service.clock.advance(1000);
  await restartDrained();
  const again: string[] = [];
  for (const [packId, members] of grants) again.push((await u.grant(packId, members)).balanceId);
  assert.deepEqual(again, ids);
  assert.equal((await u.credits({ includeExpired: true })).length, 3);
});

Deno.test("the order of refusals: the pack, the quantity, the expiry, the sandbox cap", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 0 } });
  const refuse = async (members: object, status: number, code: string) =>
    assertRefused(await u.ask("POST", "/credits/grant", members), status, code, JSON.stringify(members));
  const past = "2020-01-01";
  await refuse({ packId: "cpk_none", quantity: 0, expiresAt: past }, 404, "credit_pack_not_found");
  await refuse({ packId: "cpk_wallet", quantity: 0, expiresAt: past }, 400, "invalid_quantity");
  await refuse({ packId: "cpk_wallet", quantity: 1, expiresAt: past }, 400, "invalid_request");
  await refuse({ packId: "cpk_wallet", quantity: 1 }, 429, "test_quota_exceeded");
});

Deno.test("the sandbox cap counts every balance ever issued in the app's test mode, all of a grant or none", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 4 } });
  const v = new Customer(u.app, "v", u.key);
  const isFull = async (customer: Customer, packId: string) => {
    const answer = await customer.ask("POST", "/credits/grant", { packId, quantity: 1, externalRef: "new" });
    assertRefused(answer, 429, "test_quota_exceeded", packId);
  };
  const first = await u.grant("cpk_bundle", { externalRef: "known" });
  const balanceId = await v.fund("cpk_wallet", 1);
  await isFull(u, "cpk_bundle");
  await isFull(v, "cpk_bundle");
  assert.equal((await u.credits()).length, 2, "no half of a grant");
  assert.equal((await u.ledger()).length, 2);
  await v.post("/credits/revoke", { balanceId });
  await isFull(v, "cpk_bundle");
  await service.restart();
  await isFull(v, "cpk_bundle");
  await v.grant("cpk_topup");
  await isFull(u, "cpk_topup");
  await isFull(u, "cpk_wallet");
  const keyed = () =>
    u.app.call("POST", "/credits/grant", { userId: "w", packId: "cpk_topup" }, {
      key: u.key,
      headers: { "idempotency-key": "k" },
    });
  assertRefused(await keyed(), 429, "test_quota_exceeded");
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "known" }), first, "a known ref is no grant");
  assertRefused(await u.ask("POST", "/credits/grant", { packId: "cpk_no" }), 404, "credit_pack_not_found");
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: 6 });
  await u.grant("cpk_bundle", { externalRef: "new" });
  await isFull(v, "cpk_topup");
  assertRefused(await keyed(), 429, "test_quota_exceeded");
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: null });
  await u.grant("cpk_bundle");
  await dataOf(keyed());
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: 0 });
  await isFull(v, "cpk_topup");
});

Deno.test("live mode knows no cap of balances, and does not count toward that of test mode", async () => {
  const u = await newCustomer(service, { workspace: { testCreditBalanceCap: 1 } });
  for (let call = 0; call < 3; call++) await u.grant("cpk_bundle");
  const inTest = new Customer(u.app, "u", u.app.secretTest);
  await inTest.grant("cpk_topup");
  assertRefused(
    await inTest.ask("POST", "/credits/grant", { packId: "cpk_topup" }),
    429,
    "test_quota_exceeded",
  );
  await u.grant("cpk_bundle");
  assert.equal((await u.credits()).length, 8);
});

Deno.test("of parallel grants to many users exactly as many pass as the sandbox cap has left", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 15 } });
  const customers = Array.from({ length: 10 }, (_, index) => new Customer(u.app, `v${index}`, u.key));
  const answers = await Promise.all(
    customers.flatMap((customer) =>
      [0, 1, 2].map(() =>
        customer.ask("POST", "/credits/grant", {
          packId: "cpk_bundle",
        })
      )
    ),
  );
  const [passed, refused] = [200, 429].map((code) => answers.filter(({ status }) => status === code).length);
  assert.deepEqual([passed, refused], [7, 23]);
  await u.grant("cpk_topup");
  const lists = await Promise.all(customers.map((customer) => customer.credits()));
  assert.equal(lists.flat().length, 14);
});

Deno.test("a grant is no metering operation and works at the operation cap", async () => {
  const u = await newCustomer(service, { workspace: { operationCap: 0 } });
  const id = await u.fund("cpk_wallet", 5);
  await u.post("/credits/revoke", { balanceId: id });
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === u.app.workspaceId);
  assert.deepEqual([row.operationsUsed, row.testOperationsUsed], [0, 0]);
});
