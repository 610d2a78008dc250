// The HTTP surface: mounts what the other files of this folder define, and answers what no route matches.

import { type Context, Hono } from "hono";
import { ADMIN_ENDPOINTS } from "./calls/admin.ts";
import { ADMIN_USERS } from "./calls/admin_users.ts";
import { authenticate, authorizeAdmin } from "./http/auth.ts";
import { type ConsoleOptions, consoleRoutes } from "./console/console.tsx";
import { BATCHES } from "./calls/batch.ts";
import { COMPOSE } from "./calls/compose.ts";
import { allowOrigin, isForBrowsers, preflight } from "./http/cors.ts";
import { CREDITS } from "./calls/credits.ts";
import { CUSTOMERS } from "./calls/customers.ts";
import { EVENTS } from "./calls/events.ts";
import { DOWNLOADS, EXPORT } from "./calls/export.ts";
import { gatewayRoutes } from "./gateway/gateway.ts";
import { HOLD_CALLS, SETTLE_CALLS } from "./gateway/holds.ts";
import { healthRoutes } from "./http/health.ts";
import { homeRoutes } from "./reference/home.ts";
import { namesHost } from "./http/host.ts";
import { toolRoutes } from "./mcp/serve.ts";
import { KnownPathRouter } from "./http/known_paths.ts";
import { METERING } from "./calls/metering.ts";
import { handle, handleKeyless } from "./http/endpoint.ts";
import type { Endpoint, KeylessEndpoint } from "./http/endpoint_types.ts";
import { PEOPLE } from "./calls/people.ts";
import { PRIVACY } from "./calls/privacy.ts";
import { referenceRoutes } from "./reference/serve.ts";
import { REFUSALS } from "./calls/refused_calls.ts";
import { respondTo } from "./http/respond.ts";
import { invalidMember, Refused, STATUS } from "./http/errors.ts";
import { SERVICE } from "./calls/service.ts";
import { STRIPE } from "./calls/stripe.ts";
import { SURFACE } from "./surface.ts";
import { SUBSCRIPTIONS } from "./calls/subscriptions.ts";
import { TEST_CLOCK } from "./calls/test_clock.ts";
import { BETWEEN_MEMBERS, handleStream, USAGE_STREAM, usageStream } from "./calls/usage_stream.ts";
import { USERS } from "./calls/usage.ts";
import { WEBHOOKS } from "./calls/webhooks.ts";
import { NO_ROUTE, RouteWatch } from "./http/request_metrics.ts";
import { isKeyless, runPassedKeyless } from "./http/run_keyless.ts";
import { runPassed } from "./http/run_anywhere.ts";
import type { Reply } from "../src/channel/hub.ts";
import { notRun } from "../src/cluster/passing.ts";
import type { PassedHandlers } from "../src/cluster/member_link.ts";
import type { Service, Serving } from "../src/cluster/service.ts";

/** Every endpoint for callers with an API key. */
export const ENDPOINTS: readonly Endpoint<Serving>[] = [
  ...METERING,
  ...BATCHES,
  ...USERS,
  ...USAGE_STREAM,
  ...SUBSCRIPTIONS,
  ...CREDITS,
  ...CUSTOMERS,
  ...COMPOSE,
  ...PEOPLE,
  ...PRIVACY,
  ...EXPORT,
  ...EVENTS,
  ...REFUSALS,
  ...TEST_CLOCK,
];

/** Every endpoint without an API key. */
const KEYLESS: readonly KeylessEndpoint<Serving>[] = [
  ...DOWNLOADS,
  ...ADMIN_ENDPOINTS,
  ...SERVICE,
  ...ADMIN_USERS,
  ...WEBHOOKS,
  ...STRIPE,
];

/** The path of a request that goes to no route, since its host would stand for a part of it. */
const NOWHERE = "/ ";

/**
 * The whole HTTP surface of a service.
 *
 * @param adminToken null: the admin API is off
 * @param console null: there is no console
 */
export function makeApp(
  service: Service,
  adminToken: string | null,
  console: ConsoleOptions | null = null,
): Hono {
  const { getPath } = new Hono();
  const app = new Hono({
    router: new KnownPathRouter(),
    getPath: (request) => namesHost(request) ? getPath(request) : NOWHERE,
  });
  for (const endpoint of ENDPOINTS) {
    app.on(endpoint.method, `/api${endpoint.path}`, handlerOf(endpoint, service));
  }
  for (const [path, endpoints = []] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const methods = endpoints.filter(({ access }) => isForBrowsers(access)).map(({ method }) => method);
    if (methods.length === 0) continue;
    app.options(`/api${path}`, (context) => preflight(context, service, methods));
  }
  for (const endpoint of KEYLESS) {
    const watch = new RouteWatch(service, endpoint.method, `/api${endpoint.path}`);
    app.on(
      endpoint.method,
      `/api${endpoint.path}`,
      (context) => handleKeyless(context, endpoint, service, adminToken, watch),
    );
  }
  service.handlePassed(passedHandlers(service));
  app.route("/", homeRoutes());
  app.route("/", healthRoutes(service));
  app.route("/", referenceRoutes(SURFACE));
  app.route("/", toolRoutes(service));
  if (console !== null) app.route("/", consoleRoutes(service, console, ENDPOINTS, KEYLESS));
  app.route("/", gatewayRoutes(service));
  const strays = refusingRoutes(app, service, adminToken);
  app.notFound(({ req }) => strays.fetch(req.raw));
  app.onError((error, context) => respondTo(context.req.raw, error));
  return app;
}

/** What answers calls that other members pass on. */
function passedHandlers(service: Service): PassedHandlers {
  const keyed = new Map(
    [...ENDPOINTS, ...BETWEEN_MEMBERS, ...HOLD_CALLS].map((endpoint) => [endpoint.id, endpoint]),
  );
  const keyless = new Map([...KEYLESS, ...SETTLE_CALLS].map((endpoint) => [endpoint.id, endpoint]));
  return {
    onCall: (call) => {
      const { serving } = service;
      // It may be sent to somebody else.
      if (serving === null) return Promise.resolve(notRun(null));
      return isKeyless(keyless, call)
        ? runPassedKeyless(serving, keyless, call) as Promise<Reply>
        : runPassed(serving, keyed, call);
    },
    onRequest: async (call) => {
      const { serving } = service;
      const reply = serving === null ? notRun(null) : await runPassedKeyless(serving, keyless, call);
      return typeof reply.body === "string"
        ? { head: reply.head, body: new Response(reply.body).body }
        : reply;
    },
  } as PassedHandlers;
}

/** Only what browsers may call looks at where a request comes from. */
function handlerOf(endpoint: Endpoint<Serving>, service: Service) {
  const watch = new RouteWatch(service, endpoint.method, `/api${endpoint.path}`);
  const answer = endpoint === usageStream
    ? (context: Context) => handleStream(context, service, watch)
    : (context: Context) => handle(context, endpoint, service, watch);
  if (!isForBrowsers(endpoint.access)) return answer;
  return async (context: Context) => allowOrigin(context.req.raw, await answer(context), service);
}

/**
 * What answers a request that no route of the app takes: a path that the app has answers with the methods that it
 * takes. The paths stand in an app of their own, since a second handler on each route would slow every request down.
 */
function refusingRoutes(app: Hono, service: Service, adminToken: string | null): Hono {
  const watch = new RouteWatch(service, "any", NO_ROUTE);
  const refusing = new Hono();
  const refuse = ({ req }: Context, methods: readonly string[]) => {
    const startedAt = watch.starts();
    const response = watch.threw(
      startedAt,
      req.raw,
      strayOf(req.raw, req.path, service, adminToken, methods),
    );
    if (response.status === STATUS.method_not_allowed) response.headers.set("allow", methods.join(", "));
    return response;
  };
  for (const [path, routes = []] of Map.groupBy(app.routes, ({ path }) => path)) {
    const methods = [...new Set(routes.map(({ method }) => method))].filter((method) => method !== "OPTIONS");
    refusing.all(path, (context) => refuse(context, methods));
  }
  refusing.notFound((context) => refuse(context, []));
  return refusing;
}

/**
 * What a request that no route takes is refused with. The key is looked at first, so that a stranger learns nothing of
 * the routes.
 *
 * @param methods that the path answers; none for a path that the app does not have
 */
function strayOf(
  request: Request,
  path: string,
  service: Service,
  adminToken: string | null,
  methods: readonly string[],
): unknown {
  try {
    if (!namesHost(request)) return invalidMember("Host", "names no host");
    if (path.startsWith("/api/admin/")) {
      service.requireServing();
      authorizeAdmin(request, adminToken);
    } else if (path.startsWith("/api/")) {
      authenticate(request, service);
    }
  } catch (error) {
    return error;
  }
  if (methods.length === 0) return new Refused("not_found", "Nothing answers at this path");
  const message = `The path answers ${methods.join(", ")}, not ${request.method}`;
  return new Refused("method_not_allowed", message);
}
