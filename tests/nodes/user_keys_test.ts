// Users' keys over several nodes: any node takes them, and a revoked one is refused everywhere from the answer on, while the
// cell moves too. On a server only.

import assert from "node:assert/strict";
import { CATALOG } from "../routes/support.ts";
import { EventReader } from "../support/event_stream.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;

Deno.test({
  name: "a key is valid at every node at once, and refused by all of them once it is revoked",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2, fronts: 1 });
    const app = await (nodes.all[0] as TestMember).newApp(CATALOG);
    const everywhere = async (key: string) => {
      const answers = await Promise.all(nodes.all.map((node) => node.ask(key, "GET", "/usage")));
      return [
        ...new Set(answers.map(({ status, body }) => body.error?.code ?? `${status} ${body.data.userId}`)),
      ];
    };
    const make = async (at: TestMember) => {
      const { status, body } = await at.ask(app.secretLive, "POST", "/users/u/keys", {});
      assert.equal(status, 200, JSON.stringify(body));
      return body.data as { readonly userKeyId: string; readonly key: string };
    };
    for (const at of [...nodes.all]) {
      const { key, userKeyId } = await make(at);
      assert.deepEqual(await everywhere(key), ["200 u"]);
      await using stream = await EventReader.open((nodes.fronts[0] as TestMember).http, "/usage/stream", key);
      await stream.data();
      const path = `/users/u/keys/${userKeyId}`;
      assert.equal((await at.ask(app.secretLive, "DELETE", path)).status, 200);
      assert.deepEqual(await everywhere(key), ["invalid_key"]);
      await stream.ends("key_revoked");
      const wrong = await at.ask(key, "POST", "/track", "{");
      assert.equal(wrong.body.error.code, "invalid_key");
    }
    const [kept, gone] = [await make(nodes.ownerOf(app)), await make(nodes.strangerTo(app))];
    const front = nodes.fronts[0] as TestMember;
    const ended = await front.ask(app.secretLive, "DELETE", `/users/u/keys/${gone.userKeyId}`);
    assert.equal(ended.status, 200);
    await nodes.leave(nodes.ownerOf(app));
    await nodes.settled();
    assert.deepEqual([await everywhere(kept.key), await everywhere(gone.key)], [["200 u"], ["invalid_key"]]);
    await nodes.break(nodes.ownerOf(app));
    await nodes.settled();
    assert.deepEqual([await everywhere(kept.key), await everywhere(gone.key)], [["200 u"], ["invalid_key"]]);
  },
});
