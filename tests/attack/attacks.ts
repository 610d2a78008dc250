// The attacks. Each runs until the signal ends it, and then reports what it achieved: a text is a breach.

import type { AttackScene } from "./scene.ts";

/** One attack. */
export interface Attack {
  readonly name: string;
  /** Only a store on a server lets it happen. */
  readonly needsServer?: boolean;
  /** Prepares what the attack needs, before anything is measured. */
  prepare?(scene: AttackScene): Promise<void>;
  /** Attacks until the signal; answers what it broke, or null. */
  run(scene: AttackScene, signal: AbortSignal): Promise<string | null>;
}

/** A number of attackers side by side, each at it again and again. */
async function together(count: number, signal: AbortSignal, act: (index: number) => Promise<unknown>) {
  await Promise.all(Array.from({ length: count }, async (_, index) => {
    while (!signal.aborted) {
      await act(index).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve));
    }
  }));
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Sends a body and reads its answer; answers the status. */
async function post(
  scene: AttackScene,
  path: string,
  body: Uint8Array<ArrayBuffer>,
  key: string | null,
  type = "application/json",
) {
  const headers: Record<string, string> = { "content-type": type };
  if (key !== null) headers.authorization = `Bearer ${key}`;
  const response = await fetch(scene.origin + path, {
    method: "POST",
    headers,
    body,
    redirect: "manual",
    signal: AbortSignal.timeout(60_000),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a connection, sends the head of a request and some of its body, and then nothing, until the signal. */
async function hang(scene: AttackScene, head: string, body: Uint8Array, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(scene.origin);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const close = () => {
    try {
      connection.close();
    } catch {
      // The service closed it.
    }
  };
  signal.addEventListener("abort", close, { once: true });
  try {
    for (const bytes of [bytesOf(head), body]) {
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    }
    const answer = new Uint8Array(1024);
    while (!signal.aborted && await connection.read(answer) !== null);
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

function headOf(method: string, path: string, headers: Record<string, string | number>): string {
  const lines = Object.entries({ host: "holdfast.test", ...headers }).map(([name, value]) =>
    `${name}: ${value}`
  );
  return [`${method} ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}

const FORM = bytesOf("a&".repeat(520_000));
const MEBIBYTE = 1024 * 1024;

/** Captures events of a person and makes an export link; answers its path. */
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

export const ATTACKS: readonly Attack[] = [
  { name: "no attack", run: (_, signal) => together(1, signal, () => untilEnd(signal)).then(() => null) },
  {
    name: "forms at sign-in",
    run: async (scene, signal) => {
      const type = "application/x-www-form-urlencoded";
      await together(4, signal, () => post(scene, "/console/sign-in", FORM, null, type));
      return null;
    },
  },
  {
    name: "structure at the gateway",
    run: async (scene, signal) => {
      const body = bytesOf(`{"model":"m","user":"u","messages":["",${"[],".repeat(11_000_000)}[]]}`);
      const path = "/openai/v1/chat/completions";
      await together(3, signal, () => post(scene, path, body, scene.attacker.secretTest));
      return null;
    },
  },
  {
    name: "structure in batches",
    run: async (scene, signal) => {
      const body = bytesOf(`{"events":[${"[],".repeat(1_300_000)}[]]}`);
      await together(4, signal, () => post(scene, "/api/v1/track/batch", body, scene.attacker.secretTest));
      return null;
    },
  },
  {
    name: "bodies of a public key",
    run: async (scene, signal) => {
      const body = bytesOf(`{"distinctId":"u","event":"e","properties":{"a":[${"1,".repeat(500_000)}1]}}`);
      await together(6, signal, () => post(scene, "/api/v1/capture", body, scene.attacker.publicLive));
      return null;
    },
  },
  {
    name: "bodies without a key that never end",
    run: async (scene, signal) => {
      const path = `/api/v1/stripe/${scene.attacker.appId}/live`;
      const head = headOf("POST", path, { "content-length": MEBIBYTE });
      await together(135, signal, () => hang(scene, head, new Uint8Array(MEBIBYTE - 10), signal));
      return null;
    },
  },
  {
    name: "bodies of a tenant that never end",
    run: async (scene, signal) => {
      const size = 4 * MEBIBYTE;
      const head = headOf("POST", "/api/v1/track/batch", {
        "authorization": `Bearer ${scene.attacker.secretLive}`,
        "content-type": "application/json",
        "content-length": size,
      });
      await together(60, signal, () => hang(scene, head, new Uint8Array(size - 10), signal));
      return null;
    },
  },
  {
    name: "encoded paths",
    run: async (scene) => {
      for (
        const path of [
          "/%6detrics",
          "/api/%61dmin/v1/workspaces",
          "/%61pi/admin/v1/workspaces",
          "/c%6fnsole/sign-in",
        ]
      ) {
        const { status } = await scene.ask({ method: "GET", path, bearer: scene.attacker.secretLive });
        if (status !== 404) return `${path} answered ${status}`;
      }
      return null;
    },
  },
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
      open.abort();
      await streams;
      const held = Number(/^holdfast_streams (\d+)/m.exec(String(metrics.body))?.[1] ?? Number.NaN);
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
      return refused <= 20 ? null : `${refused} tokens could be tried`;
    },
  },
  {
    name: "a person of another user",
    run: async (scene) => {
      const { publicLive, secretLive } = scene.attacker;
      await scene.ask({
        method: "POST",
        path: "/api/v1/track",
        bearer: secretLive,
        body: { userId: "paying", event: "image.generated" },
      });
      for (
        const [distinctId, mergeAnonymousId] of [["paying", "mine"], ["mine", "paying"], [
          "paying",
          "anon_mine",
        ]]
      ) {
        const body = { distinctId, mergeAnonymousId, consentGiven: true };
        await scene.ask({ method: "POST", path: "/api/v1/identify", bearer: publicLive, body });
      }
      for (const distinctId of ["mine", "anon_mine"]) {
        await scene.ask({
          method: "POST",
          path: "/api/v1/opt-out",
          bearer: secretLive,
          body: { distinctId },
        });
      }
      const { body } = await scene.ask({
        method: "GET",
        path: "/api/v1/opted-out?distinctId=paying",
        bearer: secretLive,
      });
      return (body as { data: { optedOut: boolean } }).data.optedOut ? "another person was opted out" : null;
    },
  },
  {
    name: "slow reads",
    needsServer: true,
    prepare: async ({ stage, attacker, ask }) => {
      const body = { userId: "hidden", event: "image.generated" };
      await ask({ method: "POST", path: "/api/v1/track", bearer: attacker.secretLive, body });
      await ask({ method: "GET", path: "/api/v1/events?userId=hidden", bearer: attacker.secretLive });
      // Newer copies of the event, which the opt-out hides from the feed one by one.
      await stage.look.script(
        `insert into events select (jsonb_populate_record(null::events, to_jsonb(e) || jsonb_build_object(
           'id', 'evt_copy' || place, 'created_at_ms', e.created_at_ms + place))).*
         from (select * from events order by created_at_ms desc limit 1) e, generate_series(1, 300000) place`,
      );
      const optOut = { distinctId: "hidden" };
      await ask({ method: "POST", path: "/api/v1/opt-out", bearer: attacker.secretLive, body: optOut });
    },
    run: async (scene, signal) => {
      await together(
        40,
        signal,
        () =>
          scene.ask({ method: "GET", path: "/api/v1/events?limit=100", bearer: scene.attacker.secretLive }),
      );
      return null;
    },
  },
];

function untilEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
