// Attacks on what tenants share: streams, memory, downloads, connections to the database, the audit log.

import { ADMIN_TOKEN } from "../crash/stage.ts";
import type { AttackScene } from "./scene.ts";
import { type Attack, bytesOf, hang, headOf, together, untilEnd } from "./tools.ts";

/** Captures events of a person and makes an export link; returns its path. */
async function fillPerson(scene: AttackScene, distinctId: string, events: number): Promise<string> {
  const properties = { text: "x".repeat(8_000) };
  for (let at = 0; at < events; at += 10) {
    await Promise.all(Array.from({ length: 10 }, () =>
      scene.ask({
        method: "POST",
        path: "/api/v1/capture",
        bearer: scene.attacker.secretLive,
        body: { distinctId, event: "page.seen", properties },
      })));
  }
  const made = await scene.ask({
    method: "POST",
    path: "/api/v1/export-person",
    bearer: scene.attacker.secretLive,
    body: { distinctId },
  });
  const { pathname, search } = new URL((made.body as { data: { downloadUrl: string } }).data.downloadUrl);
  return pathname + search;
}

let exportPath = "";

/** Makes a page of the attacker's feed take about a second, or a part of it. */
async function hideEvents({ stage, attacker, ask }: AttackScene, part: number): Promise<void> {
  const body = { userId: "hidden", event: "image.generated" };
  await ask({ method: "POST", path: "/api/v1/track", bearer: attacker.secretLive, body });
  await ask({ method: "GET", path: "/api/v1/events?userId=hidden", bearer: attacker.secretLive });
  // Newer copies of the event, which the opt-out hides from the feed one by one.
  await stage.look.script(
    `insert into events select copy.*
     from (select * from events order by created_at_ms desc limit 1) e, generate_series(1, ${
      Math.round(300_000 * part)
    }) place,
       jsonb_populate_record(null::events, to_jsonb(e) || jsonb_build_object(
         'id', 'evt_copy' || place, 'created_at_ms', e.created_at_ms + place)) copy`,
  );
  const optOut = { distinctId: "hidden" };
  await ask({ method: "POST", path: "/api/v1/opt-out", bearer: attacker.secretLive, body: optOut });
}

/** Forty readers of the attacker's feed, at every process in turn. */
async function readSlowly({ ask, origins, attacker }: AttackScene, signal: AbortSignal): Promise<void> {
  const call = { method: "GET", path: "/api/v1/events?limit=100", bearer: attacker.secretLive };
  await together(40, signal, (index) => ask(call, origins[index % origins.length]));
}

/** Audit rows that wrong tokens may cause in a run: one for each address and minute, and way. */
const AUDIT_ROWS_MAX = 10;

export const SHARE_ATTACKS: readonly Attack[] = [
  {
    name: "streams of one token",
    run: async (scene, signal) => {
      const page = await scene.pageHeaders("streamer");
      const open = new AbortController();
      const streams = Promise.all(Array.from({ length: 1_000 }, async (_, at) => {
        const head = headOf("GET", `/api/v1/usage/stream?event=image.e${at}`, page);
        await hang(scene, head, new Uint8Array(), open.signal).catch(() => {});
      }));
      await together(2, signal, () =>
        scene.ask({
          method: "POST",
          path: "/api/v1/track",
          bearer: scene.attacker.secretLive,
          body: { userId: "streamer", event: "image.generated" },
        }));
      const metrics = await scene.ask({ method: "GET", path: "/metrics" });
      const other = await fetch(`${scene.origin}/api/v1/usage/stream?userId=user_1`, {
        headers: { authorization: `Bearer ${scene.victim.secretLive}` },
      });
      await other.body?.cancel();
      open.abort();
      await streams;
      const held = Number(/^holdfast_streams (\d+)/m.exec(String(metrics.body))?.[1] ?? Number.NaN);
      if (other.status !== 200) return `a stream of another tenant was answered ${other.status}`;
      return held <= 5 ? null : `one token holds ${held} streams`;
    },
  },
  {
    name: "texts of holds",
    run: async (scene, signal) => {
      const body = {
        event: "image.generated",
        prompt: "p".repeat(30_000),
        metadata: { text: "m".repeat(15_000) },
      };
      await together(8, signal, (index) =>
        scene.ask({
          method: "POST",
          path: "/api/v1/reserve",
          bearer: scene.attacker.secretLive,
          body: { ...body, userId: `holder_${index % 2}` },
        }));
      return null;
    },
  },
  {
    name: "readers of an export that take nothing",
    prepare: async (scene) => {
      exportPath = await fillPerson(scene, "exported", 1_000);
    },
    run: async (scene, signal) => {
      const { hostname, port } = new URL(scene.origin);
      const open: Deno.Conn[] = [];
      for (let at = 0; at < 400; at++) {
        const connection = await Deno.connect({ hostname, port: Number(port) });
        await connection.write(bytesOf(headOf(at % 4 === 0 ? "HEAD" : "GET", exportPath, {})));
        open.push(connection);
      }
      await untilEnd(signal);
      for (const connection of open) connection.close();
      return null;
    },
  },
  {
    name: "wrong tokens",
    run: async (scene, signal) => {
      const seen = new Map<number, number>();
      await together(4, signal, async (index) => {
        const bearer = `wrong-token-${index}-0123456789`;
        const { status } = await scene.ask({ method: "GET", path: "/api/admin/v1/workspaces", bearer });
        seen.set(status, (seen.get(status) ?? 0) + 1);
      });
      const refused = seen.get(401) ?? 0;
      if (refused > 20) return `${refused} tokens could be tried`;
      // The right token passes all the same.
      const { entries } = await scene.admin("GET", "/audit?limit=200", undefined);
      const written = entries.filter(({ what }: { what: string }) => what === "signInFailed").length;
      return written > 0 && written <= AUDIT_ROWS_MAX ? null : `the audit log has ${written} of these tokens`;
    },
  },
  {
    name: "slow reads",
    needsServer: true,
    prepare: hideEvents,
    run: async (scene, signal) => {
      await readSlowly(scene, signal);
      return null;
    },
  },
  {
    name: "slow reads beside new workspaces",
    needsServer: true,
    processes: 2,
    prepare: hideEvents,
    run: async (scene, signal) => {
      const failed = new Set<number>();
      const make = async () => {
        const call = {
          method: "POST",
          path: "/api/admin/v1/workspaces",
          bearer: ADMIN_TOKEN,
          body: { name: "W" },
        };
        const { status } = await scene.ask(call, scene.origins[1]);
        if (status !== 200) failed.add(status);
        await new Promise((resolve) => setTimeout(resolve, 300));
      };
      await Promise.all([readSlowly(scene, signal), together(1, signal, make)]);
      return failed.size === 0 ? null : `a workspace was not made: ${[...failed].join(", ")}`;
    },
  },
];
