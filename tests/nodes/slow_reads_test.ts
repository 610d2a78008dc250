// Slow reads of one app: calls of other apps, reads and changes of the registry go on beside them. On a server only.

import assert from "node:assert/strict";
import { CATALOG } from "../routes/support.ts";
import type { TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const READS = 40;

Deno.test({
  name: "forty reads of one app that hang fail no call of another, and hold no change of the registry up",
  ignore: testServerUrl() === null,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2 });
    const [first, second] = nodes.all as [TestMember, TestMember];
    const slow = await first.newApp(CATALOG);
    const other = await first.newApp(CATALOG);
    const reader = nodes.ownerOf(slow);
    const must = async (node: TestMember, app: TestApp, method: string, path: string, body?: unknown) => {
      const answer = await node.ask(app.secretLive, method, path, body, {
        headers: { "idempotency-key": crypto.randomUUID() },
      });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    };
    await must(first, other, "POST", "/subscriptions", { userId: "u", planId: "plan_pro" });
    await reader.serving.term.flush();
    const lock = await nodes.store.database.pin(() => {});
    await lock.query("begin");
    await lock.query("lock table events in access exclusive mode");
    const hanging = Array.from({ length: READS }, () => reader.ask(slow.secretLive, "GET", "/events"));
    try {
      for (let round = 0; round < 5; round++) {
        for (const node of [first, second]) {
          const userId = `${node.name}-${round}`;
          await must(node, other, "POST", "/subscriptions", { userId, planId: "plan_pro" });
          await must(node, other, "POST", "/reserve", { userId, event: "image.x" });
          await must(node, other, "GET", `/credits/history?userId=${userId}`);
        }
        const made = await second.admin("POST", "/apps", { name: `app ${round}` });
        assert.equal(made.status, 200, JSON.stringify(made.body));
      }
    } finally {
      await lock.query("rollback");
      await lock.close();
    }
    for (const { status } of await Promise.all(hanging)) {
      assert.ok([200, 503].includes(status), String(status));
    }
  },
});
