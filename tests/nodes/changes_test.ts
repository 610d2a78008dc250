// A change by the admin API is in force at every node when its call is answered, while nodes join and leave. On a
// server only.

import assert from "node:assert/strict";
import { CATALOG, endUserToken } from "../routes/support.ts";
import type { Answer, TestApp } from "../support/test_service.ts";
import { far } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const ROUNDS = far(3);

/** Checks: each makes a change through one node, and looks for it at all others. */
const CHANGES: Readonly<Record<string, (by: TestMember, scene: Scene, round: number) => Promise<void>>> = {
  "a revoked key is refused": async (by, scene) => {
    const { body } = await by.admin("POST", `/apps/${scene.app.appId}/keys`, {
      class: "secret",
      mode: "live",
    });
    const { key, keyId } = body.data;
    await scene.everywhere((node) => node.ask(key, "GET", "/plans"), 200);
    const revoked = await by.admin("DELETE", `/apps/${scene.app.appId}/keys/${keyId}`);
    assert.equal(revoked.status, 200);
    await scene.everywhere((node) => node.ask(key, "GET", "/plans"), 401);
  },
  "a new app takes calls": async (by, scene) => {
    const app = await by.newApp(CATALOG);
    await scene.everywhere(
      (node) => node.ask(app.secretLive, "POST", "/subscriptions", { userId: "u", planId: "plan_pro" }),
      200,
    );
    await scene.everywhere((node) => node.admin("GET", `/apps/${app.appId}`), 200);
  },
  "a catalog says what a plan gives": async (by, scene, round) => {
    const [plan, ...rest] = CATALOG.plans;
    const limits = plan?.limits.map((limit) => ({ ...limit, quota: 1000 + round }));
    await scene.must(by.admin("PUT", `/apps/${scene.app.appId}/catalog`, {
      ...CATALOG,
      plans: [{ ...plan, limits }, ...rest],
    }));
    for (const [over, isAllowed] of [[0, true], [1, false]] as const) {
      const body = { userId: "u", event: "image.x", count: 1000 + round + over };
      const seen = await scene.everywhere(
        (node) => node.ask(scene.app.secretLive, "POST", "/can-use", body),
        200,
      );
      for (const { body } of seen) assert.equal(body.data.allowed, isAllowed, JSON.stringify(body.data));
    }
  },
  "a catalog of test mode is in force there alone, until it is dropped or promoted": async (
    by,
    scene,
    round,
  ) => {
    const { app } = scene;
    const path = `/apps/${app.appId}/catalog`;
    const quotaOf = async (key: string) => {
      const seen = await scene.everywhere((node) => node.ask(key, "GET", "/plans"), 200);
      return [...new Set(seen.map(({ body }) => body.data[0].limits[0].quota))];
    };
    const [before] = await quotaOf(app.secretLive);
    const [plan, ...rest] = CATALOG.plans;
    const limits = plan?.limits.map((limit) => ({ ...limit, quota: 5000 + round }));
    const tried = { ...CATALOG, plans: [{ ...plan, limits }, ...rest] };
    await scene.must(by.admin("PUT", `${path}?mode=test`, tried));
    assert.deepEqual([await quotaOf(app.secretLive), await quotaOf(app.secretTest)], [[before], [
      5000 + round,
    ]]);
    const isPromoted = round % 2 === 0;
    await scene.must(
      isPromoted ? by.admin("POST", `${path}/promote`, {}) : by.admin("DELETE", `${path}?mode=test`),
    );
    const after = [isPromoted ? 5000 + round : before];
    assert.deepEqual([await quotaOf(app.secretLive), await quotaOf(app.secretTest)], [after, after]);
  },
  "a cap stops what is above it": async (by, scene) => {
    const app = await by.newApp(CATALOG);
    await scene.must(by.ask(app.secretLive, "POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    const body = { userId: "u", event: "image.x" };
    await scene.everywhere((node) => node.ask(app.secretLive, "POST", "/track", body), 200);
    await scene.must(by.admin("PATCH", `/workspaces/${app.workspaceId}`, { operationCap: 1 }));
    await scene.everywhere((node) => node.ask(app.secretLive, "POST", "/track", body), 429);
  },
  "an identity secret signs": async (by, scene) => {
    const { body } = await by.admin("POST", `/apps/${scene.app.appId}/identity-secret`, {
      keepOldSeconds: 0,
    });
    const exp = Math.floor(scene.nodes.clock.now() / 1000) + 3600;
    const askWith = (secret: string) => (node: TestMember) =>
      node.ask(scene.app.publicLive, "GET", "/usage/me", undefined, {
        headers: { "x-end-user-token": endUserToken(secret, { userId: "u", exp }) },
      });
    await scene.everywhere(askWith(body.data.identitySecret), 200);
    await scene.everywhere(askWith(scene.app.identitySecret), 403);
  },
};

class Scene {
  readonly nodes: Nodes;
  readonly app: TestApp;

  constructor(nodes: Nodes, app: TestApp) {
    this.nodes = nodes;
    this.app = app;
  }

  async must(call: Promise<Answer>): Promise<Answer> {
    const answer = await call;
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer;
  }

  /** Asks every serving node; a node that may not answer must answer 503. */
  async everywhere(ask: (node: TestMember) => Promise<Answer>, status: number): Promise<Answer[]> {
    const asked = this.nodes.all.filter(({ service }) => service.serving !== null);
    const answers = await Promise.all(asked.map(ask));
    const seen = answers.filter((answer) => answer.status !== 503);
    assert.ok(seen.length > 0, "at least one node answers");
    for (const { status: found, body } of seen) assert.equal(found, status, JSON.stringify(body));
    return seen;
  }
}

Deno.test({
  name: "a change is in force at every node when its call is answered, while nodes join and leave",
  ignore,
  fn: async (t) => {
    await using nodes = await Nodes.open({ nodes: 2, fronts: 1 });
    const app = await (nodes.all[0] as TestMember).newApp(CATALOG);
    const scene = new Scene(nodes, app);
    await scene.must(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    let isOver = false;
    let moves = 0;
    const moving = (async () => {
      while (!isOver) {
        const node = await nodes.join(moves % 3 === 2 ? 0 : 1);
        await new Promise((resolve) => setTimeout(resolve, 400));
        await nodes.leave(node);
        moves += 2;
      }
    })();
    try {
      for (let round = 0; round < ROUNDS; round++) {
        for (const [name, change] of Object.entries(CHANGES)) {
          const by = nodes.all[round % 3] as TestMember;
          await t.step(`${name}, ${round}`, () => change(by, scene, round));
        }
      }
    } finally {
      isOver = true;
      await moving;
    }
    assert.ok(moves > 2, String(moves));
  },
});
