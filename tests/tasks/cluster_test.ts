// `deno task admin cluster` beside three members of one database: what each owns, and what is wrong when one ends. What a
// change that was not confirmed everywhere is answered with.

import assert from "node:assert/strict";
import { makeApp } from "../../routes/app.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import { systemClock } from "../../src/process/clock.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { Service } from "../../src/cluster/service.ts";
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { RegistryChanges, Unconfirmed } from "../../src/tenant/registry_changes.ts";
import { parsePrometheus, total } from "../observability/prometheus.ts";
import {
  ADMIN_TOKEN,
  send,
  startTestService,
  TEST_FEATURES,
  type TestService,
} from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { operatorOf, testShell, withService } from "./support.ts";
import { until } from "../support/until.ts";

const isServer = testServerUrl() !== null;

/** Another member on the store of a service under test. */
async function join({ store }: TestService, share: number): Promise<Service> {
  const clock = systemClock();
  const network = tcpNetwork("127.0.0.1:0");
  const service = new Service(store.database, makeIdSource(clock), clock, TEST_FEATURES, { network, share });
  makeApp(service, ADMIN_TOKEN);
  void service.start();
  await service.ready();
  return service;
}

Deno.test({
  name: "admin cluster shows every member with its cells, and says in words what is wrong",
  ignore: !isServer,
  fn: async () => {
    await withService(async (one) => {
      const front = await join(one, 0);
      const ask = async () => (await one.admin("GET", "/cluster")).body.data;
      await until(async () => {
        const { members } = await ask();
        return members.length === 2 && members.every((row: { isReached: boolean }) => row.isReached);
      });
      const all = await ask();
      assert.deepEqual(
        all.members.map((
          row: { term: number; cells: number[]; share: number },
        ) => [row.cells.length, row.share]),
        [[64, 1], [0, 0]],
      );
      assert.deepEqual([all.cellsWithoutOwner, all.troubles], [[], []]);
      const text = testShell(operatorOf(one));
      assert.equal(await runAdmin(["cluster"], text.shell), EXIT.ok);
      assert.match(
        text.out(),
        /\n +1 +127\.0\.0\.1:\d+ +64 +\d+ +\d+ +\S+ +answers\n +2 +\S+ +front .* yes\n/,
      );
      assert.match(text.out(), /cells without an owner: 0\nAll is well\.$/);

      const { database } = one.store;
      await database.query("update cells set term = null where cell in (7, 8, 9, 30)");
      let seen = all;
      // The front's next beat says again which version it has.
      await until(async () => {
        await database.query("update members set registry_version = -1 where share = 0");
        seen = await ask();
        return seen.troubles.length === 2;
      });
      const { cellsWithoutOwner, troubles } = seen;
      assert.deepEqual(cellsWithoutOwner, [7, 8, 9, 30]);
      assert.match(troubles[0].found, /^cells 7 to 9, 30 without an owner/);
      assert.match(troubles[1].found, /^process 2 \(127\.0\.0\.1:\d+\) has version -1 of the registry/);
      await front.stop();
    });
  },
});

Deno.test({
  name: "a member gives everything to the others before it stops, and is not to be sent calls from then on",
  ignore: !isServer,
  fn: async () => {
    const one = await startTestService();
    assert.equal(await one.service.leave(), false, "there is no other process to take over");
    assert.equal((await send(one.http, "GET", "/readyz", undefined, {})).status, 200);
    const app = await one.newApp();
    const other = await join(one, 1);
    await until(() => other.serving?.node.reaches(one.serving().lease.term) === true);
    // A call that takes long keeps its own cell, with the door open.
    const { doors } = one.serving().term;
    const pinned = doors.held.find((cell) => cell !== cellOf(app.workspaceId)) ?? 0;
    assert.ok(doors.tryEnter(pinned));
    doors.pin(pinned);
    assert.equal(await one.service.leave(), true);
    assert.deepEqual(doors.held, [pinned]);
    assert.ok(doors.isOpen(pinned));
    const ready = await send(one.http, "GET", "/readyz", undefined, {});
    assert.deepEqual([ready.status, ready.body.error.details.status], [503, "leaving"]);
    assert.match(ready.body.error.message, /about to stop/);
    assert.equal((await app.call("GET", "/plans")).status, 200, "calls are passed on");
    const metrics = parsePrometheus((await send(one.http, "GET", "/metrics", undefined, {})).body);
    const counted = ["cells", "cells_handed_over_total", "calls_passed_on_total", "channels", "members"];
    assert.deepEqual(counted.map((name) => total(metrics, `holdfast_${name}`)), [1, 63, 1, 1, 2]);
    assert.ok(total(metrics, "holdfast_channel_bytes_total", { direction: "sent" }) > 0);
    assert.equal(other.counts.cluster.taken, 1);
    doors.unpin(pinned);
    doors.leave(pinned);
    assert.equal(await one.service.leave(), true);
    assert.deepEqual(doors.held, []);
    await one.service.stop();
    await other.stop();
    await one.store.close();
  },
});

Deno.test("a change that some member has not confirmed is a 503 that says that it is made", async () => {
  const service = await startTestService();
  const app = await service.newApp();
  const change = RegistryChanges.prototype.change;
  RegistryChanges.prototype.change = async function (...args) {
    await change.apply(this, args);
    throw new Unconfirmed("Applied, not yet confirmed by every process; repeating the call is safe");
  };
  try {
    const { status, headers, body } = await service.admin("PATCH", `/workspaces/${app.workspaceId}`, {
      name: "new",
    });
    assert.deepEqual([status, headers.get("retry-after"), body.error.code], [503, "1", "unavailable"]);
    assert.match(body.error.message, /Applied, not yet confirmed by every process/);
  } finally {
    RegistryChanges.prototype.change = change;
    await service.close();
  }
});
