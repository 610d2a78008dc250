// The tool server over HTTP: `POST /mcp` with a secret key. A call of a tool runs the endpoint of its call in this process,
// with the same key.

import { type Context, Hono } from "hono";
import type { ToolOutcome } from "./tool_server.ts";
import { identify } from "../http/admission.ts";
import { authorize, type Source } from "../http/auth.ts";
import { readText, rulesOf } from "../http/body.ts";
import type { DispatchWorld } from "../http/call.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { Refused, STATUS } from "../http/errors.ts";
import type { FailureSource } from "../http/failed_requests.ts";
import { callEndpoint } from "../http/handle.ts";
import type { KeyedDefinition } from "../contract/definition.ts";
import { EVENTS, type FeedWorld } from "../calls/events.ts";
import { FEATURES } from "../calls/features.ts";
import { METERING } from "../calls/metering.ts";
import { REFUSALS, type RefusalsWorld } from "../calls/refused_calls.ts";
import { USERS, type UsersWorld } from "../calls/usage.ts";
import { headersOf, requestId, respondTo } from "../http/respond.ts";
import type { ToolMembers } from "./tools.ts";
import { type MetricsSource, RouteMetrics } from "../http/request_metrics.ts";

/** The path of the tool server. */
export const TOOL_SERVER_PATH = "/mcp";

/** What the endpoints of all tools work on. */
type ToolWorld = FeedWorld & RefusalsWorld & UsersWorld;

const ENDPOINTS: ReadonlyMap<string, Endpoint<ToolWorld>> = new Map(
  [...EVENTS, ...FEATURES, ...METERING, ...REFUSALS, ...USERS].map((endpoint) => [endpoint.id, endpoint]),
);

type ToolSource = Source<DispatchWorld & ToolWorld> & MetricsSource & FailureSource;

/** The route of the tool server. */
export function toolRoutes(source: ToolSource): Hono {
  const app = new Hono();
  app.post(TOOL_SERVER_PATH, (context) => answer(context, source));
  return app;
}

async function answer({ req }: Context, source: ToolSource): Promise<Response> {
  const request = req.raw;
  try {
    const { world, caller } = await identify(request, source);
    authorize(request, { access: "secret", isRead: true }, caller, world.clock.now());
    const id = requestId(request);
    const make = async ({ id }: KeyedDefinition, members: ToolMembers) => {
      const endpoint = ENDPOINTS.get(id) as Endpoint<ToolWorld>;
      const metrics = new RouteMetrics(source, endpoint.method, `/api${endpoint.path}`, source);
      return await callEndpoint(request, endpoint, members, source, metrics) as ToolOutcome;
    };
    const [{ answerPost }, { callTool, TOOLS }] = await Promise.all([
      import("./http.ts"),
      import("./tools.ts"),
    ]);
    // The library parses the text. Its bounds are ours: those of every other call.
    const text = await readText(request, rulesOf({ access: "secret" }, caller)).catch(refuseMessage);
    if (typeof text !== "string") return text;
    const { method, headers } = request;
    const response = await answerPost(
      new Request(request.url, { method, headers, body: text }),
      TOOLS,
      (name, input) => callTool(make, name, input),
    );
    const type = response.headers.get("content-type");
    const answered = new Headers(response.headers);
    for (const [name, value] of Object.entries(headersOf(id, type ?? ""))) {
      if (value !== "") answered.set(name, value);
    }
    return new Response(response.body, { status: response.status, headers: answered });
  } catch (error) {
    return respondTo(request, error);
  }
}

/** The code of JSON-RPC for a message that is not a valid request. */
const INVALID_REQUEST = -32_600;

/** Returns the refusal of a message that was not read, in the shape of JSON-RPC. */
function refuseMessage(fault: unknown): Response {
  if (!(fault instanceof Refused)) throw fault;
  const { code, message } = fault.refusal;
  const body = { jsonrpc: "2.0", error: { code: INVALID_REQUEST, message }, id: null };
  return Response.json(body, { status: STATUS[code] });
}
