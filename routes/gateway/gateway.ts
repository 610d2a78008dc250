// The routes of the gateway: a metered, OpenAI-compatible API in front of the model server.

import { type Context, Hono } from "hono";
import { identify } from "../http/admission.ts";
import type { Source } from "../http/auth.ts";
import { invalidMember, methodNotAllowed, unknownPath } from "../http/errors.ts";
import { namesHost } from "../http/host.ts";
import { type MetricsSource, NO_ROUTE, RouteMetrics } from "../http/request_metrics.ts";
import { answerCall, answerModels, type Gateway, type GatewayWorld } from "./call.ts";
import { refuseCall } from "./errors.ts";
import { CALL_KINDS } from "./model_call.ts";
import { type CallSource, OpenCalls } from "./open_calls.ts";

/** Where the gateway is. */
export const GATEWAY_PATH = "/openai/v1";

type GatewaySource = Source<GatewayWorld> & MetricsSource & CallSource;

/** The routes of the gateway. */
export function gatewayRoutes(source: GatewaySource): Hono {
  const app = new Hono();
  const gateway: Gateway = { source, calls: new OpenCalls(source) };
  const methods = new Map<string, string>();
  for (const kind of CALL_KINDS) {
    const path = `${GATEWAY_PATH}${kind.path}`;
    const metrics = new RouteMetrics(source, "POST", path);
    app.post(path, (context) => answerCall(context, kind, gateway, metrics));
    methods.set(path, "POST");
  }
  const models = `${GATEWAY_PATH}/models`;
  const metrics = new RouteMetrics(source, "GET", models);
  app.get(models, (context) => answerModels(context, gateway, metrics));
  methods.set(models, "GET");
  const stray = new RouteMetrics(source, "any", NO_ROUTE);
  app.all("/openai/*", (context) => refuseStray(context, methods, source, stray));
  return app;
}

/** Refuses requests that no route takes, in the gateway's own shape. */
async function refuseStray(
  { req }: Context,
  methods: ReadonlyMap<string, string>,
  source: GatewaySource,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = req.raw;
  const startedAt = metrics.starts();
  const method = methods.get(req.path);
  try {
    if (!namesHost(request)) throw invalidMember("Host", "invalid host");
    await identify(request, source);
    if (method === undefined) throw unknownPath(request);
    throw methodNotAllowed(request.method, [method]);
  } catch (error) {
    const response = refuseCall(metrics, startedAt, request, error);
    if (response.status === 405 && method !== undefined) response.headers.set("allow", method);
    return response;
  }
}
