// What only bare connections can do to a real process: requests that contradict themselves, that stop half-way or
// come byte by byte, and thousands of connections at once. Other clients are served meanwhile.

import assert from "node:assert/strict";
import { pause, until } from "../crash/program.ts";
import { Stage } from "../crash/stage.ts";
import { answerOf, once, Wire } from "../crash/wire.ts";
import { closeAll, connect, type End, latin1, memoryOf, openFilesMax, sendRaw, write } from "./sockets.ts";

const IDLE = 5_000;
const HALF_SENT = 500;
const SLOW = 20;
const MEMORY_MORE = 256 * 1024 * 1024;
const FEW_FILES = 250;
const BACK_MS = 60_000;
const filesMax = await openFilesMax();
const isTooFew = filesMax < IDLE + HALF_SENT + 1_000;

const BODY = '{"userId":"hot","event":"image.x"}';

/** A call with a body, by hand; the connection ends with the answer. */
function post(key: string, headers: string, body: string, path = "/api/v1/track"): string {
  const own = `Host: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n`;
  return `POST ${path} HTTP/1.1\r\n${own}${headers}\r\n${body}`;
}

/** Requests by hand, and the statuses that must come back: one for each request that may count. */
function shapes(key: string): [name: string, text: string, statuses: number[], end?: End][] {
  const length = `Content-Length: ${BODY.length}\r\n`;
  const chunk = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
  const chunked = "Transfer-Encoding: chunked\r\n";
  const get = (path: string, headers = "") =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${key}\r\n${headers}\r\n`;
  const kept = post(key, length, BODY).replace("Connection: close\r\n", "");
  return [
    ["a good one", post(key, length, BODY), [200]],
    ["a chunked one", post(key, chunked, chunk), [200]],
    ["garbage after it", `${kept}garbage\r\n\r\n`, [200, 400]],
    ["another one after it", `${kept}${post(key, length, BODY)}`, [200, 200]],
    ["two lengths", post(key, `Content-Length: 4\r\n${length}`, BODY), [400]],
    ["a list of lengths", post(key, "Content-Length: 34, 34\r\n", BODY), [400]],
    ["a length and chunks", post(key, length + chunked, chunk), [400]],
    ["chunks and a length", post(key, chunked + length, chunk), [400]],
    ["an unknown coding", post(key, "Transfer-Encoding: xchunked\r\n", chunk), [400]],
    ["chunked, but not last", post(key, "Transfer-Encoding: chunked, identity\r\n", chunk), [400]],
    ["a space before the colon", post(key, "Transfer-Encoding : chunked\r\n", chunk), [400]],
    ["a folded header", post(key, `X-A: b\r\n c\r\n${length}`, BODY), [400]],
    ["a negative length", post(key, "Content-Length: -1\r\n", BODY), [400]],
    ["a length past any number", post(key, `Content-Length: ${"9".repeat(40)}\r\n`, BODY), [400]],
    ["a length that is no number", post(key, "Content-Length: 1e3\r\n", BODY), [400]],
    ["a length past the limit", post(key, "Content-Length: 99999999\r\n", BODY), [413], "one answer"],
    ["a body that is cut off", post(key, "Content-Length: 1000\r\n", BODY), [400], "no more"],
    ["chunks that are cut off", post(key, chunked, chunk.slice(0, -5)), [400], "no more"],
    ["a thousand headers", get("/api/v1/plans", "X-A: b\r\n".repeat(1000)), [400]],
    ["a header of half a MiB", get("/api/v1/plans", `X-A: ${"b".repeat(512 * 1024)}\r\n`), [400]],
    ["an address of half a MiB", get(`/api/v1/usage?userId=${"u".repeat(512 * 1024)}`), [400]],
    ["a byte that is no text in the address", get("/api/v1/users/\xff"), [400]],
    ["an invalid method", get("/api/v1/plans").replace("GET", "G<T"), [400]],
    ["an invalid version", get("/api/v1/plans").replace("HTTP/1.1", "HTTP/9.9"), [400]],
    ["TRACE", get("/api/v1/plans").replace("GET", "TRACE"), [405]],
    ["a method override", post(key, `X-HTTP-Method-Override: DELETE\r\n${length}`, BODY), [200]],
    ["two keys", get("/api/v1/plans", "Authorization: Bearer x\r\n"), [401]],
    ["an address in full of another host", get("http://other.test:99999999/api/v1/plans"), [200]],
    ["two hosts", get("/api/v1/plans", "Host: y\r\n"), [400]],
    ["a path in the host", get("/healthz").replace("Host: x", "Host: x/api/v1/plans?"), [400]],
    ["an asterisk", get("*").replace("GET", "OPTIONS"), [404]],
    ["nothing", "", [], "no more"],
    ["empty lines", "\r\n\r\n", [400], "no more"],
  ];
}

Deno.test("bare connections to one process", async (test) => {
  await using stage = await Stage.open();
  const { program, origin } = await stage.startReady();
  await stage.populate(origin);
  const key = stage.secretKey;
  await test.step("contradictory, cut-off and oversized requests are answered once, and count once", async () => {
    let counted = 0;
    for (const [name, text, statuses, end = "server"] of shapes(key)) {
      const answer = await sendRaw(origin, latin1(text), end);
      assert.deepEqual(answer.statuses, statuses, `${name}: ${answer.text.slice(0, 500)}`);
      if (text.startsWith("POST")) counted += statuses.filter((status) => status === 200).length;
    }
    assert.equal(await countOf(origin, key), counted);
    assert.ok(!program.stderr.includes("A request failed"), program.stderr);
  });
  await test.step({
    name:
      `${IDLE} idle and ${HALF_SENT} half-sent connections stop no other client (ulimit -n is ${filesMax})`,
    ignore: isTooFew,
    fn: async () => {
      const counted = await countOf(origin, key);
      const before = await memoryOf(program.pid);
      const flood: Deno.Conn[] = [];
      try {
        const whole = post(key, `Content-Length: ${BODY.length}\r\n`, BODY);
        await open(origin, IDLE, flood, () => "");
        await open(origin, HALF_SENT, flood, (at) => whole.slice(0, at % 2 === 0 ? 30 : -5));
        const slow = await open(origin, SLOW, flood, () => "");
        await Promise.all([track(origin, key, 60), drip(slow, whole)]);
        const memory = await memoryOf(program.pid);
        assert.ok(memory < before + MEMORY_MORE, `${before} bytes before, ${memory} bytes with the flood`);
      } finally {
        closeAll(flood);
      }
      await track(origin, key, 20);
      // Half a request counts as none; a slow complete one counts.
      assert.equal(await countOf(origin, key), counted + 80 + SLOW);
      assert.ok(!program.hasEnded);
    },
  });
});

Deno.test("more connections than the process may open files end nothing: it is there again by itself", async () => {
  await using stage = await Stage.open();
  const { program, origin } = await stage.startReady({}, FEW_FILES);
  await stage.populate(origin);
  const key = stage.secretKey;
  await track(origin, key, 5);
  for (let flooding = 0; flooding < 2; flooding++) {
    const flood: Deno.Conn[] = [];
    try {
      await open(origin, FEW_FILES * 2, flood, (at) => at % 3 === 0 ? "POST /api" : "").catch(() => {});
      // The flood stays: its connections were closed by the process, so there is room for others.
      await until("it answers again", BACK_MS, async () => {
        const outcome = await once(origin, { method: "GET", path: "/readyz" }, 2_000);
        return outcome.kind === "answer" && outcome.answer.status === 200 ? true : null;
      });
    } finally {
      closeAll(flood);
    }
    await track(origin, key, 5);
  }
  assert.ok(!program.hasEnded, program.stderr);
  assert.equal(await countOf(origin, key), 15);
});

/** Opens connections and sends each what a test says. */
async function open(
  origin: string,
  count: number,
  all: Deno.Conn[],
  textOf: (at: number) => string,
): Promise<Deno.Conn[]> {
  const mine: Deno.Conn[] = [];
  for (let at = 0; at < count; at++) {
    const connection = await connect(origin);
    mine.push(connection);
    all.push(connection);
    await write(connection, textOf(at));
  }
  return mine;
}

/** Sends a request byte by byte on several connections. */
async function drip(connections: readonly Deno.Conn[], text: string): Promise<void> {
  for (const character of text) {
    await Promise.all(connections.map((connection) => write(connection, character)));
    await pause(1);
  }
}

/** Tracks events one after another on one connection; each must be answered. */
async function track(origin: string, bearer: string, count: number): Promise<void> {
  const wire = new Wire(origin);
  const body = { userId: "hot", event: "image.x" };
  try {
    for (let at = 0; at < count; at++) {
      const answer = answerOf(await wire.call({ method: "POST", path: "/api/v1/track", bearer, body }));
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }
  } finally {
    wire.close();
  }
}

async function countOf(origin: string, bearer: string): Promise<number> {
  const answer = answerOf(await once(origin, { method: "GET", path: "/api/v1/usage?userId=hot", bearer }));
  return answer.body.data.counters[0].count;
}
