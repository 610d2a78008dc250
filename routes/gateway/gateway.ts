// The routes of the gateway: metered APIs in the dialects of OpenAI and Anthropic, in front of model servers.

import { type Context, Hono } from "hono";
import { identify } from "../http/admission.ts";
import type { Source } from "../http/auth.ts";
import { invalidMember, methodNotAllowed, unknownPath } from "../http/errors.ts";
import type { FailureSource } from "../http/failed_requests.ts";
import { namesHost } from "../http/host.ts";
import { type MetricsSource, NO_ROUTE, RouteMetrics } from "../http/request_metrics.ts";
import { answerCall, type Gateway, type GatewayWorld } from "./call.ts";
import { type Dialect, DIALECTS } from "./dialects.ts";
import { refuseCall } from "./errors.ts";
import { type CallSource, OpenCalls } from "./open_calls.ts";
import { answerModels, answerPlainCall } from "./plain_calls.ts";

type GatewaySource = Source<GatewayWorld> & MetricsSource & CallSource & FailureSource;

/** The routes of the gateway. */
export function gatewayRoutes(source: GatewaySource): Hono {
  const app = new Hono();
  const calls = new OpenCalls(source);
  for (const dialect of DIALECTS) addRoutes(app, { dialect, source, calls }, source);
  return app;
}

function addRoutes(app: Hono, gateway: Gateway, source: GatewaySource): void {
  const { dialect } = gateway;
  const methods = new Map<string, string>();
  for (const kind of dialect.calls) {
    const path = dialect.path + kind.path;
    const metrics = new RouteMetrics(source, "POST", path, source);
    const answer = kind.event === null ? answerPlainCall : answerCall;
    app.post(path, ({ req }) => answer(req.raw, kind, gateway, metrics));
    methods.set(path, "POST");
  }
  const models = `${dialect.path}/models`;
  const metrics = new RouteMetrics(source, "GET", models, source);
  app.get(models, ({ req }) => answerModels(req.raw, null, gateway, metrics));
  methods.set(models, "GET");
  if (dialect.hasModel) {
    const ofOne = new RouteMetrics(source, "GET", `${models}/{id}`, source);
    app.get(`${models}/:id`, ({ req }) => answerModels(req.raw, req.param("id"), gateway, ofOne));
  }
  const stray = new RouteMetrics(source, "any", NO_ROUTE, source);
  app.all(
    `${dialect.path.replace(/\/v1$/, "")}/*`,
    (context) => refuseStray(context, methods, source, dialect, stray),
  );
}

/** Refuses requests that no route takes, in the gateway's own shape. */
async function refuseStray(
  { req }: Context,
  methods: ReadonlyMap<string, string>,
  source: GatewaySource,
  dialect: Dialect,
  metrics: RouteMetrics,
): Promise<Response> {
  const request = req.raw;
  const startedAt = metrics.starts();
  const method = methods.get(req.path);
  try {
    if (!namesHost(request)) throw invalidMember("Host", "invalid host");
    await identify(request, source, dialect.keyHeader);
    if (method === undefined) throw unknownPath(request);
    throw methodNotAllowed(request.method, [method]);
  } catch (error) {
    const response = refuseCall(dialect, metrics, startedAt, request, error);
    if (response.status === 405 && method !== undefined) response.headers.set("allow", method);
    return response;
  }
}
