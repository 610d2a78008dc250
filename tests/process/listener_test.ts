// The port: shared only by processes that are all set to share it, and closed without a lost call of a client that
// heard of the end.

import assert from "node:assert/strict";
import { checkAddress, listen, type ListenAddress } from "../../src/process/listener.ts";
import { ConfigError } from "../../src/process/settings.ts";

const FREE: ListenAddress = { host: "127.0.0.1", port: 0, sharesPort: true };

Deno.test("processes that share their port listen beside each other, and the error of another process names the setting", async () => {
  const one = listen(FREE, () => new Response("x"));
  const shared = { ...FREE, port: one.port };
  const other = listen(shared, () => new Response("x"));
  assert.equal(other.port, one.port);
  assert.throws(() => checkAddress({ ...shared, sharesPort: false }), ConfigError);
  await Promise.all([one.shutdown(), other.shutdown()]);
  const alone = listen({ ...FREE, sharesPort: false }, () => new Response("x"));
  assert.throws(
    () => listen({ ...FREE, port: alone.port }, () => new Response("x")),
    /PORT \d+ on 127\.0\.0\.1 is in use .* HOLDFAST_SHARE_PORT=true/,
  );
  await alone.shutdown();
});

Deno.test("before the port closes each answer is the last one on its connection", async () => {
  const listener = listen(FREE, () => Promise.resolve(new Response("x")));
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: listener.port });
  const ask = async () => {
    await connection.write(new TextEncoder().encode("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    const bytes = new Uint8Array(1_000);
    return new TextDecoder().decode(bytes.subarray(0, await connection.read(bytes) ?? 0));
  };
  assert.doesNotMatch(await ask(), /connection: close/i);
  listener.endConnections();
  assert.match(await ask(), /connection: close/i);
  connection.close();
  await listener.shutdown();
});
