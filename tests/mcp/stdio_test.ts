// The tool server over standard input and output: `deno task mcp` as a program, with the SDK's client.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { lineOf, programVariables, ROOT, runTask, withService } from "tests/tasks/support.ts";
import { appWithEvents, assertRefusals, assertSameAsRest, assertTools, callTool } from "tests/mcp/support.ts";

async function connect(variables: Record<string, string>): Promise<Client> {
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

Deno.test("over stdio the tools answer what the REST calls answer", async () => {
  await withService(async (service) => {
    const app = await appWithEvents(service);
    const client = await connect({ PORT: new URL(service.url).port, HOLDFAST_KEY: app.secretLive });
    try {
      await assertTools(client);
      await assertSameAsRest(client, app);
      await assertRefusals(client);
    } finally {
      await client.close();
    }
  });
});

Deno.test("a service that is not there is a tool's error, and the client can ask again", async () => {
  const client = await connect({ PORT: "1", HOLDFAST_KEY: "sk_live_0" });
  try {
    for (let times = 0; times < 2; times++) {
      const { isError, text } = await callTool(client, "list_events", {});
      assert.equal(isError, true);
      assert.equal(text.code, "unavailable");
    }
  } finally {
    await client.close();
  }
});

Deno.test("without a secret key the program ends with one line and status 2", async () => {
  const { code, out, err } = await runTask("mcp", [], { HOLDFAST_KEY: "pk_live_public" });
  assert.deepEqual({ code, out }, { code: 2, out: "" });
  assert.match(err, /^--key: is no secret key .*\n$/);
  assert.doesNotMatch(err, /pk_live_public/);
});
