// SIGTERM to two processes with thousands of workspaces, one after the other: the cells pass on while calls to all
// workspaces go on, no call fails, and every acknowledged event is in the tables afterwards. On a server only.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { type ClusterNode, ownersOf, startNodes, termOf } from "./nodes.ts";
import { pause } from "./program.ts";
import { Stage } from "./stage.ts";
import { answerOf, Wire } from "./wire.ts";
import { isDeep } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const WORKSPACES = isDeep ? 5_000 : 500;
const LOOPS = 16;
const EXIT_MS = 60_000;

Deno.test({
  name: `two processes with ${WORKSPACES} workspaces end by SIGTERM, and no acknowledged answer is missing`,
  ignore: testServerUrl() === null,
  fn: async () => {
    await using stage = await Stage.open();
    await makeWorkspaces(stage);
    const [leaver, last] = await startNodes(stage, 2) as [ClusterNode, ClusterNode];
    const tracks = new Tracks();
    await tracks.ofAll([leaver, last]);
    assert.equal(tracks.acknowledged.size, WORKSPACES);

    tracks.start(last);
    await pause(300);
    leaver.program.signal("SIGTERM");
    assert.equal((await leaver.program.exit(EXIT_MS)).code, 0, leaver.program.stderr);
    await tracks.stop();
    assert.ok(
      (await ownersOf(stage)).every((owner) => owner === termOf(last)),
      "the other process has every cell",
    );
    assert.doesNotMatch(last.program.stderr, /The term ended|Took over/);

    last.program.signal("SIGTERM");
    assert.equal((await last.program.exit(EXIT_MS)).code, 0, last.program.stderr);
    const [left] = await stage.look.query<{ cells: number; batches: number }>(
      `select (select count(*) from cells where term is not null)::bigint as cells,
         (select count(*) from journal)::bigint as batches`,
    );
    assert.deepEqual(left, { cells: 0, batches: 0 });
    const stored = await stage.look.query<{ id: string }>("select id from events");
    assert.deepEqual(tracks.acknowledged.difference(new Set(stored.map(({ id }) => id))), new Set());
    console.log(
      `${tracks.acknowledged.size} events, the longest call took ${Math.round(tracks.longestMs)} ms`,
    );
  },
});

/** Makes workspaces with an app and a key each, straight in the tables. */
async function makeWorkspaces(stage: Stage): Promise<void> {
  await migrate(stage.look, MIGRATIONS);
  const each = `from generate_series(1, ${WORKSPACES}) as numbers(no)`;
  await stage.look.script(`
    insert into workspaces (id, name, created_at_ms) select 'ws_' || no, 'Many', no ${each};
    insert into apps (id, workspace_id, name, identity_secret, created_at_ms)
      select 'app_' || no, 'ws_' || no, 'Many', '', no ${each};
    insert into realms (realm, app_id, mode)
      select 2 * no - place, 'app_' || no, mode ${each}, (values (1, 'live'), (0, 'test')) as modes(place, mode);
    insert into keys (id, app_id, class, mode, hash, prefix, created_at_ms)
      select 'key_' || no, 'app_' || no, 'secret', 'live',
        encode(sha256(convert_to('${keyOf("")}' || no, 'UTF8')), 'hex'), 'sk_live_', no ${each};`);
}

function keyOf(no: number | ""): string {
  return `sk_live_many_${no}`;
}

/** Events of all workspaces. */
class Tracks {
  readonly acknowledged = new Set<string>();
  longestMs = 0;
  #isOn = false;
  #loops: Promise<void>[] = [];
  #next = 0;

  /** Tracks one event of each workspace. */
  async ofAll(nodes: readonly ClusterNode[]): Promise<void> {
    const last = this.#next + WORKSPACES;
    await Promise.all(Array.from({ length: LOOPS }, async (_, place) => {
      const wire = new Wire((nodes[place % nodes.length] as ClusterNode).origin);
      while (this.#next < last) await this.#track(wire);
      wire.close();
    }));
  }

  /** Tracks events of one workspace after the other until stopped. */
  start({ origin }: ClusterNode): void {
    this.#isOn = true;
    this.#loops = Array.from({ length: LOOPS }, async () => {
      const wire = new Wire(origin);
      while (this.#isOn) {
        await this.#track(wire);
        await pause(10);
      }
      wire.close();
    });
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
  }

  async #track(wire: Wire): Promise<void> {
    const startedAt = performance.now();
    const no = this.#next++ % WORKSPACES + 1;
    const body = { userId: "u", event: "image.x" };
    const outcome = await wire.call({ method: "POST", path: "/api/v1/track", bearer: keyOf(no), body });
    this.longestMs = Math.max(this.longestMs, performance.now() - startedAt);
    const { status, body: answer } = answerOf(outcome);
    assert.equal(status, 200, JSON.stringify(answer));
    this.acknowledged.add(answer.data.eventId);
  }
}
