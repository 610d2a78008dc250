// The tool server over HTTP: `POST /mcp` with a secret key. A tool's call is a call of its operation with the same key,
// within this process. Section 11 of the decisions.

import { type Context, Hono } from "hono";
import { authenticate, authorize } from "./auth.ts";
import { headersOf, requestId, respondTo } from "./respond.ts";
import { callTool, TOOLS } from "./tools.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import type { Service } from "../src/service/service.ts";

/** Where the tool server is. */
export const TOOL_SERVER_PATH = "/mcp";

/**
 * The route of the tool server.
 *
 * @param fetch answers a request to the API, as the whole app does
 */
export function toolRoutes(
  service: Service,
  fetch: (request: Request) => Response | Promise<Response>,
): Hono {
  const app = new Hono();
  app.post(TOOL_SERVER_PATH, (context) => answer(context, service, fetch));
  return app;
}

async function answer(
  { req }: Context,
  service: Service,
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<Response> {
  const request = req.raw;
  try {
    const { serving, caller } = authenticate(request, service);
    authorize(request, "secret", caller, serving.clock.now());
    const id = requestId(request);
    const headers = { authorization: req.header("authorization") ?? "", "x-request-id": id };
    const { origin } = new URL(request.url);
    const send = async (path: string) => await fetch(new Request(`${origin}/api${path}`, { headers }));
    const { answerPost } = await import("../src/mcp/http.ts");
    const response = await answerPost(
      request,
      TOOLS,
      (name, input) => callTool(send, name, input),
      REQUEST_LIMITS.bodyBytesMax,
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
