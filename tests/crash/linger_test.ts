// A stopping process whose event loop was held up still looks at every connection before it closes them.

import assert from "node:assert/strict";
import { linger } from "../../src/process/linger.ts";

const CLIENTS = 20;
const LINGER_MS = 200;
const SENT_MS = 60_000;

/** Clients in a thread of their own: each gets an answer, and sends again when the server's thread is held up. */
function clientsOf(port: number): Worker {
  const code = `
    const request = new TextEncoder().encode("GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n");
    const all = Array.from({ length: ${CLIENTS} }, () => Deno.connect({ hostname: "127.0.0.1", port: ${port} }));
    const connections = await Promise.all(all);
    const send = () => Promise.all(connections.map((connection) => connection.write(request)));
    const isAnswered = (connection) => connection.read(new Uint8Array(1000)).then((got) => got !== null, () => false);
    const answered = async () => (await Promise.all(connections.map(isAnswered))).filter((is) => is).length;
    await send();
    await answered();
    const go = new Promise((resolve) => onmessage = ({ data }) => resolve(data));
    postMessage("connected");
    const areSent = await go;
    await send();
    // With a message to take, the server's loop gets to its timers before it looks at any connection.
    postMessage("sent");
    Atomics.store(areSent, 0, 1);
    Atomics.notify(areSent, 0);
    postMessage(await answered());`;
  return new Worker(`data:text/javascript,${encodeURIComponent(code)}`, { type: "module" });
}

Deno.test("calls that came while a stopping process was held up are answered", async () => {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => new Response("x"));
  const clients = clientsOf(server.addr.port);
  const connected = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<number>();
  clients.onmessage = ({ data }) => {
    if (data === "connected") connected.resolve();
    if (typeof data === "number") answered.resolve(data);
  };
  await connected.promise;
  const stopped = linger(LINGER_MS).then(() => server.shutdown());
  const areSent = new Int32Array(new SharedArrayBuffer(4));
  clients.postMessage(areSent);
  // Holds this thread up until the calls lie before it, and then for longer than the time that it lingers.
  assert.notEqual(Atomics.wait(areSent, 0, 0, SENT_MS), "timed-out");
  Atomics.wait(areSent, 0, 1, 2 * LINGER_MS);
  assert.equal(await answered.promise, CLIENTS);
  await stopped;
  clients.terminate();
});
