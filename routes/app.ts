// The HTTP surface: mounts what the other files of this folder define, and answers what no route matches.

import { type Context, Hono } from "hono";
import { ADMIN_ENDPOINTS } from "./admin.ts";
import { AUDIT } from "./audit.ts";
import { ADMIN_USERS } from "./admin_users.ts";
import { authenticate, authorizeAdmin } from "./auth.ts";
import { type ConsoleOptions, consoleRoutes } from "./console/console.tsx";
import { BATCHES } from "./batch.ts";
import { COMPOSE } from "./compose.ts";
import { allowOrigin, isForBrowsers, preflight } from "./cors.ts";
import { CREDITS } from "./credits.ts";
import { CUSTOMERS } from "./customers.ts";
import { DAILY_USE } from "./daily_use.ts";
import { EVENTS } from "./events.ts";
import { DOWNLOADS, EXPORT } from "./export.ts";
import { GATEWAY_PAGES } from "./gateway/docs.ts";
import { gatewayRoutes } from "./gateway/gateway.ts";
import { HOLD_CALLS, SETTLE_CALLS } from "./gateway/holds.ts";
import { healthRoutes } from "./health.ts";
import { homeRoutes } from "./home.ts";
import { namesHost } from "./host.ts";
import { toolRoutes } from "./mcp.ts";
import { KnownPathRouter } from "./known_paths.ts";
import { METERING } from "./metering.ts";
import { handle, handleKeyless } from "./endpoint.ts";
import type { Endpoint, KeylessEndpoint } from "./endpoint_types.ts";
import { PEOPLE } from "./people.ts";
import { PRIVACY } from "./privacy.ts";
import { PAGES } from "./reference/pages.ts";
import type { Surface } from "./reference/openapi.ts";
import { referenceRoutes } from "./reference/serve.ts";
import { REFUSALS } from "./refusals.ts";
import { respondTo } from "./respond.ts";
import { invalidMember, Refused, STATUS } from "./errors.ts";
import { STRIPE } from "./stripe.ts";
import { SUBSCRIPTIONS } from "./subscriptions.ts";
import { TEST_CLOCK } from "./test_clock.ts";
import { BETWEEN_MEMBERS, handleStream, streamUsage, USAGE_STREAM } from "./usage_stream.ts";
import { USERS } from "./users.ts";
import { WEBHOOKS } from "./webhooks.ts";
import { NO_ROUTE, RouteWatch } from "./watch.ts";
import { isKeyless, runPassedKeyless } from "./run_keyless.ts";
import { runPassed } from "./run_anywhere.ts";
import type { Reply } from "../src/channel/hub.ts";
import { notRun } from "../src/cluster/passing.ts";
import type { PassedHandlers } from "../src/service/member_link.ts";
import type { Service, Serving } from "../src/service/service.ts";

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
  ...ADMIN_USERS,
  ...WEBHOOKS,
  ...STRIPE,
  ...AUDIT,
  ...DAILY_USE,
];

/** Everything that the reference shows. */
export const SURFACE: Surface = {
  endpoints: [...ENDPOINTS, ...KEYLESS],
  pages: [...PAGES, ...GATEWAY_PAGES],
};

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
    [...ENDPOINTS, ...BETWEEN_MEMBERS, ...HOLD_CALLS].map((endpoint) => [endpoint.doc.id, endpoint]),
  );
  const keyless = new Map([...KEYLESS, ...SETTLE_CALLS].map((endpoint) => [endpoint.doc.id, endpoint]));
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
  const answer = endpoint === streamUsage
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
