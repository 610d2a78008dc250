// The routes of the gateway: an OpenAI-compatible API in front of the model server, metered. Section 6 of beyond.md.

import { type Context, Hono } from "hono";
import { authenticate } from "../http/auth.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { namesHost } from "../http/host.ts";
import { NO_ROUTE, type Observed, RouteWatch } from "../http/request_metrics.ts";
import type { Source } from "../http/endpoint.ts";
import { answerCall, answerModels, type Gateway, type GatewayWorld } from "./call.ts";
import { refuseCall } from "./errors.ts";
import { CALL_KINDS } from "./model_call.ts";
import { type CallSource, OpenCalls } from "./open_calls.ts";

/** Where the gateway is. */
export const GATEWAY_PATH = "/openai/v1";

type GatewaySource = Source<GatewayWorld> & Observed & CallSource;

/** The routes of the gateway. */
export function gatewayRoutes(source: GatewaySource): Hono {
  const app = new Hono();
  const gateway: Gateway = { source, calls: new OpenCalls(source) };
  const methods = new Map<string, string>();
  for (const kind of CALL_KINDS) {
    const path = `${GATEWAY_PATH}${kind.path}`;
    const watch = new RouteWatch(source, "POST", path);
    app.post(path, (context) => answerCall(context, kind, gateway, watch));
    methods.set(path, "POST");
  }
  const models = `${GATEWAY_PATH}/models`;
  const watch = new RouteWatch(source, "GET", models);
  app.get(models, (context) => answerModels(context, gateway, watch));
  methods.set(models, "GET");
  const stray = new RouteWatch(source, "any", NO_ROUTE);
  app.all("/openai/*", (context) => refuseStray(context, methods, source, stray));
  return app;
}

/** Refuses what no route takes, in the gateway's own shape. */
function refuseStray(
  { req }: Context,
  methods: ReadonlyMap<string, string>,
  source: GatewaySource,
  watch: RouteWatch,
): Response {
  const request = req.raw;
  const startedAt = watch.starts();
  const method = methods.get(req.path);
  try {
    if (!namesHost(request)) throw invalidMember("Host", "names no host");
    authenticate(request, source);
    if (method === undefined) throw new Refused("not_found", "Nothing answers at this path");
    throw new Refused("method_not_allowed", `The path answers ${method}, not ${request.method}`);
  } catch (error) {
    const response = refuseCall(watch, startedAt, request, error);
    if (response.status === 405 && method !== undefined) response.headers.set("allow", method);
    return response;
  }
}
