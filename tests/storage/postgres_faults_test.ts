// Errors of statements: the database is away, so that the caller may retry, or a bug of ours.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { faultOf, openPostgres } from "../../src/storage/postgres_database.ts";
import { testServerUrl } from "../support/test_store.ts";

/** Codes of the socket and of the driver; the first two look like a SQLSTATE. */
const LOSSES = ["EPIPE", "EBADF", "ECONNRESET", "ETIMEDOUT", "CONNECTION_CLOSED", "CONNECTION_ENDED"];

Deno.test("a lost socket is a temporary fault, whatever its code", () => {
  for (const code of LOSSES) {
    const fault = faultOf(Object.assign(new Error("lost"), { code }));
    assert(fault instanceof Unavailable, code);
  }
});

Deno.test("an error without a code is returned unchanged", () => {
  const bug = new TypeError("not a function");
  assert.equal(faultOf(bug), bug);
});

const AUTHENTICATED = [..."R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"];
const FAREWELL = message(
  "E",
  "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0",
);

/** A message of the server as text, one character per byte. */
function message(type: string, body: string): string[] {
  return [type, "\0", "\0", "\0", String.fromCharCode(body.length + 4), ...body];
}

/** Accepts sessions and ends each at once; returns their application names after the listener has closed. */
async function endSessions(listener: AsyncIterable<Deno.Conn>): Promise<string[]> {
  const introductions: string[] = [];
  for await (const connection of listener) {
    const buffer = new Uint8Array(4096);
    for (const answer of [AUTHENTICATED, FAREWELL]) {
      const length = await connection.read(buffer);
      if (length === null) break;
      if (answer === AUTHENTICATED) introductions.push(new TextDecoder().decode(buffer.subarray(8, length)));
      await connection.write(Uint8Array.from(answer, (char) => char.charCodeAt(0)));
    }
    connection.close();
  }
  return introductions;
}

Deno.test("a session that the server ends at once is a fault, and has no other effect on the process", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = endSessions(listener);
  const database = openPostgres(`postgres://someone@127.0.0.1:${listener.addr.port}/none`, 1);
  try {
    for (let times = 0; times < 3; times++) await assert.rejects(database.query("select 1"), Unavailable);
  } finally {
    await database.close();
    listener.close();
    await serving;
  }
});

Deno.test("a balancer without a server, which closes at once, is asked once for each statement", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  let times = 0;
  const serving = (async () => {
    for await (const connection of listener) {
      times += 1;
      connection.close();
    }
  })();
  const place = `127.0.0.1:${listener.addr.port}`;
  const database = openPostgres(`postgres://someone@${place},${place}/none`, 1);
  await assert.rejects(database.query("select 1"), Unavailable);
  await assert.rejects(database.pin(() => assert.fail("it was never open")), Unavailable);
  await database.close();
  listener.close();
  await serving;
  assert.equal(times, 4, "two hosts for each");
});

Deno.test("a server is reached by the folder of its socket, instead of a host or as the parameter host", async () => {
  const folder = await Deno.makeTempDir();
  const listener = Deno.listen({ transport: "unix", path: `${folder}/.s.PGSQL.5433` });
  const serving = endSessions(listener);
  const name = encodeURIComponent(folder);
  try {
    for (const url of [`postgres://ann@${name}:5433/shop`, `postgres://ann@any:5433/shop?host=${name}`]) {
      const database = openPostgres(url, 1);
      await assert.rejects(database.query("select 1"), Unavailable);
      await database.close();
    }
  } finally {
    listener.close();
    await Deno.remove(folder, { recursive: true });
  }
  const named = (await serving).map((text) =>
    /^user\0ann\0database\0shop\0/.test(text) && !text.includes("host")
  );
  assert.deepEqual(named, [true, true]);
});

Deno.test({
  name: "a statement that the server refuses is a bug, and a server that shuts down is not",
  ignore: testServerUrl() === null,
  async fn() {
    const database = openPostgres(testServerUrl() as string, 1);
    try {
      await assert.rejects(
        database.query("select no_such_column"),
        (error) => !(error instanceof Unavailable),
      );
      await assert.rejects(
        database.query("do $$ begin raise exception using errcode = '57P01'; end $$"),
        Unavailable,
      );
    } finally {
      await database.close();
    }
  },
});
