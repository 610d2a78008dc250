// One attempt against real servers on this machine: what is sent, how each kind of answer is judged, and which address
// is called.

import assert from "node:assert/strict";
import { Webhook } from "npm:standardwebhooks@1.1.1";
import { SENDER_LIMITS } from "../../src/process/webhook_limits.ts";
import { Caller, realSurroundings, type Surroundings } from "../../src/webhooks/attempt.ts";
import type { Attempt, AttemptResult } from "../../src/webhooks/transport.ts";
import { CERTIFICATE, PRIVATE_KEY } from "./certificate.ts";

const SECRETS = [1, 2].map((byte) => `whsec_${new Uint8Array(32).fill(byte).toBase64()}`);
const NEVER = new AbortController().signal;

/** A request as it came. */
interface Received {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  /** Of the connection. */
  readonly port: number;
}

/** A server with what it received. */
interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly received: Received[];
}

type Answer = (request: Request) => Response | Promise<Response>;

function receiver(
  answer: Answer,
  options: { hostname?: string; port?: number; cert?: string; key?: string } = {},
): Receiver {
  const received: Received[] = [];
  const { hostname = "127.0.0.1", port = 0 } = options;
  const tls = options.cert === undefined ? {} : { cert: options.cert, key: options.key as string };
  const server = Deno.serve(
    { hostname, port, onListen: () => {}, ...tls },
    async (request, { remoteAddr }) => {
      received.push({
        url: request.url,
        headers: Object.fromEntries(request.headers),
        body: await request.clone().text(),
        port: (remoteAddr as Deno.NetAddr).port,
      });
      return await answer(request);
    },
  );
  const { port: bound } = server.addr as Deno.NetAddr;
  return {
    url: `http://${hostname}:${bound}`,
    port: bound,
    received,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A server that answers a connection with bytes of its own. */
function rawReceiver(answer: (connection: Deno.Conn) => Promise<void>): AsyncDisposable & { url: string } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) {
      connections.push(connection);
      void connection.read(new Uint8Array(4096)).then(() => answer(connection)).catch(() => {});
    }
  })();
  return {
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    [Symbol.asyncDispose]: async () => {
      listener.close();
      for (const connection of connections) {
        try {
          connection.close();
        } catch { /* The answer closed it. */ }
      }
      await accepting;
    },
  };
}

function attemptAt(url: string, body = `{"type":"ping","data":{"text":"käse 🧀"}}`): Attempt {
  return { messageId: "whm_1", url, body, secrets: SECRETS, at: Date.now() };
}

/** A result without the text of its answer. */
function plain({ status, fault }: AttemptResult): AttemptResult {
  return { status, fault };
}

async function send(
  attempt: Attempt,
  surroundings: Partial<Surroundings> = {},
  signal = NEVER,
): Promise<AttemptResult> {
  const caller = new Caller({ ...realSurroundings(true), ...surroundings });
  try {
    return plain(await caller.attempt(attempt, signal));
  } finally {
    caller.close();
  }
}

Deno.test("an attempt is a signed POST of the very body, which the official library verifies with either secret", async () => {
  await using server = receiver(() => new Response("fine"));
  const attempt = attemptAt(`${server.url}/hooks?x=1`);
  assert.deepEqual(await send(attempt), { status: 200, fault: null });
  const [got] = server.received as [Received];
  assert.equal(got.url, `${server.url}/hooks?x=1`);
  assert.equal(got.body, attempt.body);
  assert.equal(got.headers["content-type"], "application/json");
  assert.equal(got.headers["webhook-id"], "whm_1");
  assert.equal(got.headers["webhook-timestamp"], String(Math.floor(attempt.at / 1000)));
  assert.equal(got.headers["webhook-signature"]?.split(" ").length, 2);
  for (const secret of SECRETS) {
    assert.deepEqual(new Webhook(secret).verify(got.body, got.headers), JSON.parse(attempt.body));
  }
  const other = new Webhook(`whsec_${new Uint8Array(32).fill(3).toBase64()}`);
  assert.throws(() => other.verify(got.body, got.headers));
});

Deno.test("any 2xx is a delivery, everything else is not, and no redirect is followed", async () => {
  await using target = receiver(() => new Response("reached"));
  const rows: [status: number, fault: string | null][] = [
    [200, null],
    [204, null],
    [299, null],
    [301, "answered 301; redirects are not followed"],
    [307, "answered 307; redirects are not followed"],
    [400, "answered 400"],
    [410, "answered 410"],
    [503, "answered 503"],
  ];
  for (const [status, fault] of rows) {
    await using server = receiver(() =>
      new Response(status === 204 ? null : "x", { status, headers: { location: target.url } })
    );
    assert.deepEqual(await send(attemptAt(server.url)), { status, fault });
  }
  assert.equal(target.received.length, 0);
});

Deno.test("an endpoint that never answers, or not with HTTP, or not at all, fails in words without an address", async () => {
  await using silent = rawReceiver(() => new Promise(() => {}));
  await using rude = rawReceiver(async (connection) => {
    await connection.write(new TextEncoder().encode("220 mail.example.com ESMTP\r\n"));
  });
  await using closing = rawReceiver((connection) => Promise.resolve(connection.close()));
  const gone = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = gone.addr as Deno.NetAddr;
  gone.close();
  // No name server is asked: this is the answer for an unknown name.
  const resolve = () =>
    Promise.reject(Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }));
  const rows: [url: string, fault: string][] = [
    [silent.url, "no answer within 0.2 s"],
    [rude.url, "the answer is not HTTP"],
    [closing.url, "the connection was closed without an answer"],
    [`http://127.0.0.1:${port}`, "the connection was refused"],
    ["http://unknown.test/", "the name could not be looked up"],
  ];
  for (const [url, fault] of rows) {
    const surroundings: Partial<Surroundings> = { answerMs: url === silent.url ? 200 : 15_000, resolve };
    assert.deepEqual(await send(attemptAt(url), surroundings), { status: null, fault }, url);
  }
});

Deno.test("an answer without end is cut, and counts by its status", async () => {
  let cancelled = 0;
  const endless = (status: number) =>
    new Response(
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(8 * 1024)),
        cancel: () => {
          cancelled += 1;
        },
      }),
      { status },
    );
  await using well = receiver(() => endless(200));
  await using wrong = receiver(() => endless(500));
  assert.deepEqual(await send(attemptAt(well.url)), { status: 200, fault: null });
  assert.deepEqual(await send(attemptAt(wrong.url)), { status: 500, fault: "answered 500" });
  while (cancelled < 2) await new Promise((resolve) => setTimeout(resolve, 1));
});

Deno.test("a status that came in time counts, although the rest of the answer does not come", async () => {
  await using server = rawReceiver(async (connection) => {
    await connection.write(new TextEncoder().encode("HTTP/1.1 202 Accepted\r\ncontent-length: 10\r\n\r\nab"));
  });
  assert.deepEqual(await send(attemptAt(server.url), { answerMs: 200 }), { status: 202, fault: null });
});

Deno.test("of an answer the first 1,024 bytes are kept as text, and nothing of an empty one", async () => {
  const caller = new Caller(realSurroundings(true));
  for (
    const [body, answer] of [
      ["é".repeat(400), "é".repeat(400)],
      [`x${"é".repeat(600)}`, `x${"é".repeat(511)}\uFFFD`],
      ["", undefined],
    ] as const
  ) {
    await using server = receiver(() => new Response(body, { status: 500 }));
    assert.equal((await caller.attempt(attemptAt(server.url), NEVER)).answer, answer);
  }
  caller.close();
});

Deno.test("attempts to one endpoint share a connection", async () => {
  await using server = receiver(() => new Response("fine"));
  const caller = new Caller(realSurroundings(true));
  for (let times = 0; times < 3; times++) await caller.attempt(attemptAt(server.url), NEVER);
  assert.equal(new Set(server.received.map(({ port }) => port)).size, 1);
  caller.close();
});

Deno.test("a kept connection that the endpoint closes under an attempt is no fault of the endpoint", async () => {
  let connections = 0;
  await using server = rawReceiver(async (connection) => {
    connections += 1;
    await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    await connection.read(new Uint8Array(4096));
    connection.close();
  });
  const caller = new Caller(realSurroundings(true));
  for (let times = 1; times <= 3; times++) {
    assert.deepEqual(await caller.attempt(attemptAt(server.url), NEVER), { status: 200, fault: null });
    assert.equal(connections, times);
  }
  caller.close();
});

Deno.test("a connection on which nothing is sent for long is closed", async () => {
  const closed = Promise.withResolvers<number | null>();
  await using server = rawReceiver(async (connection) => {
    await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    closed.resolve(await connection.read(new Uint8Array(4096)));
  });
  const { idleConnectionMs } = SENDER_LIMITS;
  Object.assign(SENDER_LIMITS, { idleConnectionMs: 20 });
  const caller = new Caller(realSurroundings(true));
  Object.assign(SENDER_LIMITS, { idleConnectionMs });
  assert.deepEqual(await caller.attempt(attemptAt(server.url), NEVER), { status: 200, fault: null });
  assert.equal(await closed.promise, null);
  caller.close();
});

Deno.test("the connection goes to the address that was looked at, and a name that turns private is called no more", async () => {
  await using outside = receiver(() => new Response("public"), { hostname: "127.0.0.2" });
  await using inside = receiver(() => new Response("secret"), { port: outside.port });
  const looked: string[] = [];
  const caller = new Caller({
    ...realSurroundings(false),
    allowsPrivate: true,
    resolve: (name) => {
      looked.push(name);
      return Promise.resolve([looked.length === 1 ? "127.0.0.2" : "127.0.0.1"]);
    },
    mayCall: (address) => address === "127.0.0.2",
  });
  const attempt = attemptAt(`http://rebinding.test:${outside.port}/`);
  assert.deepEqual(plain(await caller.attempt(attempt, NEVER)), { status: 200, fault: null });
  assert.deepEqual(looked, ["rebinding.test"]);
  assert.equal(outside.received[0]?.headers.host, `rebinding.test:${outside.port}`);
  const refused = { status: null, fault: "the name resolves to a private address" };
  assert.deepEqual(await caller.attempt(attempt, NEVER), refused);
  assert.deepEqual([outside.received.length, inside.received.length], [1, 0]);
  caller.close();
});

Deno.test("without permission for private addresses nothing of this machine is called, by name or by address", async () => {
  await using server = receiver(() => new Response("secret"));
  const { port } = server;
  const rows: [url: string, fault: string][] = [
    [`http://127.0.0.1:${port}/`, "the URL must be an https URL"],
    [`https://127.0.0.1:${port}/`, "the URL must not be a private address"],
    [`https://localhost:${port}/`, "the name resolves to a private address"],
    [`https://mixed.test:${port}/`, "the name resolves to a private address"],
  ];
  for (const [url, fault] of rows) {
    const real = realSurroundings(false);
    const resolve = (name: string) =>
      name === "mixed.test" ? Promise.resolve(["1.1.1.1", "127.0.0.1"]) : real.resolve(name);
    assert.deepEqual(await send(attemptAt(url), { allowsPrivate: false, resolve, mayCall: real.mayCall }), {
      status: null,
      fault,
    });
  }
  assert.equal(server.received.length, 0);
});

Deno.test("over TLS the certificate is one of the name, although the connection goes to an address", async () => {
  await using server = receiver(() => new Response("fine"), { cert: CERTIFICATE, key: PRIVATE_KEY });
  const resolve = () => Promise.resolve(["127.0.0.1"]);
  const right = attemptAt(`https://hooks.test:${server.port}/`);
  assert.deepEqual(await send(right, { resolve, ca: CERTIFICATE }), { status: 200, fault: null });
  const wrong = attemptAt(`https://other.test:${server.port}/`);
  assert.deepEqual(await send(wrong, { resolve, ca: CERTIFICATE }), {
    status: null,
    fault: "the certificate is for another name",
  });
  assert.deepEqual(await send(right, { resolve }), {
    status: null,
    fault: "the certificate could not be verified, or TLS failed",
  });
  assert.equal(server.received.length, 1);
});

Deno.test("a name with several addresses is called at the first that answers", async () => {
  await using server = receiver(() => new Response("fine"), { hostname: "127.0.0.2" });
  const resolve = () => Promise.resolve(["127.0.0.3", "127.0.0.2"]);
  const attempt = attemptAt(`http://several.test:${server.port}/`);
  assert.deepEqual(await send(attempt, { resolve }), { status: 200, fault: null });
});

Deno.test("an attempt that is ended rejects, whatever it waits for", async () => {
  await using silent = rawReceiver(() => new Promise(() => {}));
  for (const resolve of [() => Promise.resolve(["127.0.0.1"]), () => new Promise<never>(() => {})]) {
    const ends = new AbortController();
    const attempt = attemptAt(silent.url.replace("127.0.0.1", "silent.test"));
    const ended = assert.rejects(send(attempt, { resolve }, ends.signal), { name: "AbortError" });
    ends.abort();
    await ended;
  }
});
