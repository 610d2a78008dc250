// The tool server with the SDK's own client, over HTTP on a port and over the standard streams of `deno task mcp`, and
// what callers without a right get.

import assert from "node:assert/strict";
import { Client } from "npm:@modelcontextprotocol/sdk@1.32.2/client/index.js";
import { StdioClientTransport } from "npm:@modelcontextprotocol/sdk@1.32.2/client/stdio.js";
import { StreamableHTTPClientTransport } from "npm:@modelcontextprotocol/sdk@1.32.2/client/streamableHttp.js";
import type { Transport } from "npm:@modelcontextprotocol/sdk@1.32.2/shared/transport.js";
import { runMcp } from "../../src/cli/mcp.ts";
import { lineOf, programVariables, ROOT, serve, testShell } from "../tasks/support.ts";
import { serviceOfFile } from "../routes/support.ts";
import { appWithEvents, assertRefusals, assertSameAsRest, assertTools, callTool } from "./support.ts";

const service = serviceOfFile();

/** Runs a test with a connected client. */
async function withClient(key: string, work: (client: Client) => Promise<void>): Promise<void> {
  const { url, close } = serve((request) => service.http.fetch(request));
  const client = new Client({ name: "test", version: "1" });
  try {
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit });
    await client.connect(transport as Transport);
    await work(client);
  } finally {
    await client.close();
    await close();
  }
}

function post(key: string | null, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return Promise.resolve(service.http.fetch(
    new Request("http://service.test/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...key === null ? {} : { authorization: `Bearer ${key}` },
        ...headers,
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
    }),
  ));
}

const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };

Deno.test("over HTTP the tools answer what the REST calls answer, for the key's own app and mode", async () => {
  const app = await appWithEvents(service);
  await withClient(app.secretLive, async (client) => {
    await assertTools(client);
    await assertSameAsRest(client, app);
    await assertRefusals(client);
    await assert.rejects(client.callTool({ name: "delete_event", arguments: {} }), /Unknown tool/);
  });
  const other = await service.newApp();
  for (const key of [app.secretTest, other.secretLive]) {
    await withClient(key, async (client) => {
      const { structuredContent } = await client.callTool({ name: "list_events", arguments: {} });
      assert.deepEqual((structuredContent as { events: unknown }).events, []);
    });
  }
});

Deno.test("a missing or wrong key is 401, a public one 403, and no message is read", async () => {
  const app = await service.newApp();
  const cases = [[null, 401, "invalid_key"], ["sk_live_wrong", 401, "invalid_key"], [
    app.publicLive,
    403,
    "requires_secret_key",
  ]] as const;
  for (const [key, status, code] of cases) {
    const response = await post(key, "not even JSON");
    const { ok, error } = await response.json();
    assert.deepEqual({ status: response.status, ok, code: error.code }, { status, ok: false, code });
  }
});

Deno.test("answers carry the headers of every answer; other methods are refused", async () => {
  const { secretLive } = await service.newApp();
  const response = await post(secretLive, LIST, { "x-request-id": "call-7" });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("x-request-id"), "call-7");
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  assert.equal((await response.json()).result.tools.length, 6);
  for (const method of ["GET", "DELETE"]) {
    const headers = { authorization: `Bearer ${secretLive}` };
    const refused = await service.http.fetch(new Request("http://service.test/mcp", { method, headers }));
    assert.equal(refused.status, 405);
    await refused.body?.cancel();
  }
});

Deno.test("a message that is malformed or too large is refused, and the next one answered", async () => {
  const { secretLive } = await service.newApp();
  for (const [body, status] of [["{", 400], ['"text"', 400], [" ".repeat(1_100_000), 413]] as const) {
    const response = await post(secretLive, body);
    assert.equal(response.status, status);
    assert.equal((await response.json()).jsonrpc, "2.0");
  }
  const response = await post(secretLive, LIST);
  assert.equal(response.status, 200);
  await response.body?.cancel();
});

/** A client of the task, run as a program. */
async function connectStdio(variables: Record<string, string>): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    command: Deno.execPath(),
    args: await lineOf("mcp"),
    cwd: ROOT,
    env: programVariables(variables),
    stderr: "inherit",
  });
  await client.connect(transport);
  return client;
}

Deno.test("over stdio the tools answer what the REST calls answer, and an error when the service is gone", async () => {
  const { url, close } = serve((request) => service.http.fetch(request));
  const app = await appWithEvents(service);
  const client = await connectStdio({ PORT: new URL(url).port, HOLDFAST_KEY: app.secretLive });
  try {
    await assertTools(client);
    await assertSameAsRest(client, app);
    await assertRefusals(client);
  } finally {
    await close();
  }
  try {
    for (let times = 0; times < 2; times++) {
      const { isError, text } = await callTool(client, "list_events", {});
      assert.deepEqual([isError, text.code], [true, "unavailable"]);
    }
  } finally {
    await client.close();
  }
});

Deno.test("without a secret key the program ends with one line and status 2", async () => {
  const { shell, out, err } = testShell({ HOLDFAST_KEY: "pk_live_public" });
  assert.equal(await runMcp([], shell), 2);
  assert.equal(out(), "");
  assert.match(err(), /^--key: is not a secret or read-only key .*$/);
  assert.doesNotMatch(err(), /pk_live_public/);
});
