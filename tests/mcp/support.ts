// Calls of tools and checks of what they return, the same for both transports.

import assert from "node:assert/strict";
import type { Client } from "npm:@modelcontextprotocol/sdk@1.32.2/client/index.js";
import type { Tool } from "npm:@modelcontextprotocol/sdk@1.32.2/types.js";
import { appWithUser, dataOf } from "../routes/support.ts";
import type { TestApp, TestService } from "../support/test_service.ts";

/** A tool's result. */
interface ToolResult {
  readonly isError: boolean;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  readonly text: any;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  readonly structured: any;
}

/** Calls a tool; its text must be JSON. */
export async function callTool(
  client: Client,
  name: string,
  input: Record<string, unknown>,
): Promise<ToolResult> {
  const result = await client.callTool({ name, arguments: input });
  const [content, ...more] = result.content as { type: string; text: string }[];
  assert.deepEqual({ type: content?.type, more }, { type: "text", more: [] });
  return {
    isError: result.isError === true,
    text: JSON.parse(content?.text ?? ""),
    structured: result.structuredContent,
  };
}

/** An app with three events of two users. */
export async function appWithEvents(service: TestService): Promise<TestApp> {
  const app = await appWithUser(service);
  for (const [userId, event] of [["u", "image.a"], ["u", "chat.b"], ["v", "image.a"]]) {
    await dataOf(app.call("POST", "/track", { userId, event, metadata: { place: "here" } }));
  }
  return app;
}

/** Calls of the tools with the REST calls that must answer the same. */
export const CALLS: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ["list_events", {}, "/events"],
  ["list_events", { userId: "u", limit: 1, offset: 1 }, "/events?userId=u&limit=1&offset=1"],
  ["list_events", { eventType: "image.a", userId: null }, "/events?eventType=image.a"],
  ["list_events", { userId: "a&b=c/ü?" }, `/events?userId=${encodeURIComponent("a&b=c/ü?")}`],
  ["list_events", { from: "2026-01-01", to: "2026-02-01" }, "/events?from=2026-01-01&to=2026-02-01"],
  ["usage", { userId: "u" }, "/usage?userId=u"],
  ["usage", { userId: "u", levels: "true" }, "/usage?userId=u&levels=true"],
  ["features", { userId: "u" }, "/features?userId=u"],
  ["refusals", { userId: "u", limit: 5 }, "/refusals?userId=u&limit=5"],
];

/** Calls that are refused, with the code, and with the message where it must be that of the REST call. */
export const REFUSALS: readonly (readonly [string, Record<string, unknown>, string, string?])[] = [
  ["list_events", { limit: 0 }, "invalid_request"],
  ["list_events", { limit: 1.5 }, "invalid_request"],
  ["list_events", { limit: "5" }, "invalid_request"],
  ["list_events", { userId: 7 }, "invalid_request"],
  ["list_events", { userId: "x".repeat(201) }, "invalid_request"],
  [
    "list_events",
    { userId: "\ud800" },
    "invalid_request",
    "userId: must not contain U+0000 or a lone surrogate",
  ],
  ["usage", { userId: "" }, "invalid_request", "userId: must have 1 to 200 characters"],
  ["list_events", { userId: "\0" }, "invalid_request"],
  ["list_events", { offset: 10_001 }, "invalid_request"],
  ["usage", { userId: "u", levels: true }, "invalid_request"],
  ["explain", { userId: "u" }, "invalid_request"],
  ["explain", { userId: "u", event: "image.a", count: -1 }, "invalid_request"],
  ["get_event", {}, "invalid_request", "eventId: is required"],
  ["get_event", { eventId: "" }, "invalid_request", "eventId: is required"],
  ["get_event", { eventId: "\ud800" }, "invalid_request"],
  ["get_event", { eventId: "evt_unknown" }, "not_found"],
  ["get_event", { eventId: "../usage?userId=u" }, "not_found"],
  ["get_event", { eventId: ".." }, "not_found"],
];

/** Checks every call of the list, and the detail of one event, against the REST answers. */
export async function assertSameAsRest(client: Client, app: TestApp): Promise<void> {
  for (const [name, input, path] of CALLS) {
    const expected = await dataOf(app.call("GET", path));
    const { isError, text, structured } = await callTool(client, name, input);
    assert.equal(isError, false, path);
    assert.deepEqual(text, expected, path);
    assert.deepEqual(structured, expected, path);
  }
  const asked = { userId: "u", event: "image.a", options: { count: 3 } };
  const { text: explained } = await callTool(client, "explain", asked);
  assert.deepEqual(explained, await dataOf(app.call("POST", "/explain", asked)));
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.equal(events.length, 3);
  const expected = await dataOf(app.call("GET", `/events/${events[0].id}`));
  const { text, structured } = await callTool(client, "get_event", { eventId: events[0].id });
  assert.deepEqual(text, expected);
  assert.deepEqual(structured, expected);
}

/** Checks that every refusal of the list is a tool error with the error of the REST answer. */
export async function assertRefusals(client: Client): Promise<void> {
  for (const [name, input, code, message] of REFUSALS) {
    const { isError, text, structured } = await callTool(client, name, input);
    const note = `${name} ${JSON.stringify(input)}: ${JSON.stringify(text)}`;
    assert.equal(isError, true, note);
    assert.equal(text.code, code, note);
    assert.equal(text.message, message ?? String(text.message), note);
    assert.equal(structured, undefined, note);
  }
}

/** Checks the list of tools: names, and schemas that say what may be sent. */
export async function assertTools(client: Client): Promise<void> {
  const { tools }: { tools: Tool[] } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name), [
    "list_events",
    "get_event",
    "usage",
    "features",
    "refusals",
    "explain",
  ]);
  const [list, get] = tools.map(({ inputSchema }) => inputSchema);
  assert.deepEqual(Object.keys(list?.properties ?? {}), [
    "userId",
    "eventType",
    "status",
    "runId",
    "from",
    "to",
    "limit",
    "offset",
  ]);
  const bounds = { type: "integer", minimum: 1, maximum: 100, description: "1 to 100, default 20" };
  assert.deepEqual(list?.properties?.limit, bounds);
  assert.deepEqual(get?.required, ["eventId"]);
  for (const { description, outputSchema, annotations } of tools) {
    assert.ok((description ?? "").length > 20);
    assert.equal(outputSchema?.type, "object");
    assert.equal(annotations?.readOnlyHint, true);
  }
}
