// Webhook messages while cells move: the owner sends, a customer's server that hangs delays no hand-over, and the next
// owner sends messages again that were in flight. On a server only.

import assert from "node:assert/strict";
import { testServerUrl } from "../support/test_store.ts";
import { CATALOG, grant, OK, ScriptedTransport, until } from "../webhooks/support.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;

/** Starts two nodes with an app that has a webhook for credits. */
async function open() {
  const transports = new Map<string, ScriptedTransport>();
  const nodes = await Nodes.open({
    nodes: 2,
    transportOf: (name) => {
      const transport = new ScriptedTransport();
      transports.set(name, transport);
      return transport;
    },
  });
  const app = await (nodes.all[0] as TestMember).newApp(CATALOG);
  const owner = nodes.ownerOf(app);
  const other = nodes.strangerTo(app);
  const webhook = { url: "https://hooks.test/", mode: "live", events: ["credits.granted"] };
  assert.equal((await other.admin("POST", `/apps/${app.appId}/webhooks`, webhook)).status, 200);
  const [ofOwner, ofOther] = [owner, other].map(({ name }) => transports.get(name)) as [
    ScriptedTransport,
    ScriptedTransport,
  ];
  const rows = () =>
    nodes.store.database.query("select id, status, attempts from webhook_messages order by id");
  return { nodes, app, owner, other, ofOwner, ofOther, rows };
}

for (
  const [name, lose] of [
    ["hands its cell over", (nodes: Nodes, owner: TestMember) => nodes.leave(owner)],
    ["loses its term", (nodes: Nodes, owner: TestMember) => nodes.break(owner)],
  ] as const
) {
  Deno.test({
    name: `attempts in flight when the owner ${name} end there, and the next owner delivers the messages`,
    ignore,
    fn: async () => {
      const { nodes, app, owner, ofOwner, ofOther, rows } = await open();
      await using _ = nodes;
      const ended = Promise.withResolvers<void>();
      ofOwner.answer = (_, signal) => {
        signal.addEventListener("abort", () => ended.resolve());
        return new Promise(() => {});
      };
      await grant(app, "u1", "one");
      await grant(app, "u1", "two");
      await until(() => ofOwner.attempts.length === 1);
      ofOwner.answer = () => OK;
      await lose(nodes, owner);
      await ended.promise;
      await until(async () => (await rows()).every(({ status }) => status === "delivered"));
      assert.deepEqual((await rows()).map(({ attempts }) => attempts), [1, 1]);
      const [hanging, ...later] = [...ofOwner.attempts, ...ofOther.attempts];
      assert.deepEqual(later.map(({ messageId }) => messageId), (await rows()).map(({ id }) => id));
      assert.deepEqual([hanging?.messageId, hanging?.body], [later[0]?.messageId, later[0]?.body]);
    },
  });
}

Deno.test({
  name: "an owner that has lost its cell without knowing writes no outcome",
  ignore,
  fn: async () => {
    const { nodes, app, owner, ofOwner, rows } = await open();
    await using _ = nodes;
    const answer = Promise.withResolvers<typeof OK>();
    ofOwner.answer = () => answer.promise;
    await grant(app, "u1", "one");
    await until(() => ofOwner.attempts.length === 1);
    const { database } = nodes.store;
    const cell = owner.serving.registry.apps.get(app.appId)?.cell as number;
    const setTerm = (term: number) =>
      database.query("update cells set term = $2::bigint where cell = $1::int", [cell, term]);
    await setTerm(1_000_000);
    ofOwner.answer = () => OK;
    answer.resolve(OK);
    await until(() => owner.serving.sender.inFlight === 0);
    assert.deepEqual((await rows()).map(({ status, attempts }) => [status, attempts]), [["pending", 0]]);
    await setTerm(owner.term);
    await until(async () => (await rows())[0]?.status === "delivered");
    assert.equal(ofOwner.attempts.length, 2);
  },
});
