// The HTTP surface: mounts the routes of the other files, and refuses what no route takes.

import { type Context, Hono } from "hono";
import { ADMIN_ENDPOINTS } from "./calls/admin.ts";
import { CATALOG_ENDPOINTS } from "./calls/catalogs.ts";
import { READERS } from "./calls/readers.ts";
import { ACCOUNTS } from "./calls/accounts.ts";
import { ADMIN_USERS } from "./calls/admin_users.ts";
import { identify } from "./http/admission.ts";
import { type AdminAccess, authorizeAdmin } from "./http/auth.ts";
import type { ConsoleOptions } from "./console/console.tsx";
import { BATCHES } from "./calls/batch.ts";
import { COMPOSE } from "./calls/compose.ts";
import { allowOrigin, isForBrowsers, preflight } from "./http/cors.ts";
import { streamUsage } from "./contract/usage_stream.ts";
import { CREDITS } from "./calls/credits.ts";
import { CUSTOMERS } from "./calls/customers.ts";
import { EVENTS } from "./calls/events.ts";
import { DOWNLOADS, EXPORT } from "./calls/export.ts";
import { FEATURES } from "./calls/features.ts";
import { gatewayRoutes } from "./gateway/gateway.ts";
import { changeHold, reserveHold } from "./gateway/holds.ts";
import { addressOf, Guesses } from "./http/guesses.ts";
import { healthRoutes, metricsRoutes } from "./http/health.ts";
import { homeRoutes } from "./reference/home.ts";
import { answerHead } from "./http/head.ts";
import { namesHost, rawPathOf } from "./http/host.ts";
import { toolRoutes } from "./mcp/serve.ts";
import { KnownPathRouter } from "./http/known_paths.ts";
import { METERING } from "./calls/metering.ts";
import { COUNT } from "./http/ask_owner.ts";
import type { CallTarget } from "./http/call.ts";
import { handle, handleKeyless } from "./http/handle.ts";
import type { Message } from "./http/messages.ts";
import { receive } from "./http/receive.ts";
import type { Endpoint, KeylessEndpoint } from "./http/endpoint_types.ts";
import { PEOPLE } from "./calls/people.ts";
import { PRIVACY } from "./calls/privacy.ts";
import { referenceRoutes } from "./reference/serve.ts";
import { REFUSALS } from "./calls/refused_calls.ts";
import { completed, respondTo, underOneId } from "./http/respond.ts";
import { invalidMember, methodNotAllowed, STATUS, unknownPath } from "./http/errors.ts";
import { OVERAGE } from "./calls/overage.ts";
import { REQUESTS } from "./calls/requests.ts";
import { RUNS } from "./calls/runs.ts";
import { MARGINS } from "./calls/margins.ts";
import { SERVICE } from "./calls/service.ts";
import { STRIPE } from "./calls/stripe.ts";
import { SURFACE } from "./surface.ts";
import { SUBSCRIPTIONS } from "./calls/subscriptions.ts";
import { TEST_CLOCK } from "./calls/test_clock.ts";
import { handleStream, nextUsage, USAGE_STREAM } from "./calls/usage_stream.ts";
import { USERS } from "./calls/usage.ts";
import { TOP_UPS } from "./calls/top_ups.ts";
import { USER_KEYS } from "./calls/user_keys.ts";
import { WEBHOOKS } from "./calls/webhooks.ts";
import { WHAT_IF } from "./calls/what_if.ts";
import { NO_ROUTE, RouteMetrics } from "./http/request_metrics.ts";
import type { Reply } from "../src/channel/hub.ts";
import { notRun } from "../src/cluster/passing.ts";
import type { PassedHandlers } from "../src/cluster/node_link.ts";
import type { Service, Serving } from "../src/cluster/service.ts";
import { Stores } from "../src/cluster/stores.ts";

/** Every endpoint for callers with an API key. */
export const ENDPOINTS: readonly Endpoint<Serving>[] = [
  ...METERING,
  ...BATCHES,
  ...USERS,
  ...OVERAGE,
  ...FEATURES,
  ...ACCOUNTS,
  ...RUNS,
  ...USER_KEYS,
  ...USAGE_STREAM,
  ...SUBSCRIPTIONS,
  ...CREDITS,
  ...TOP_UPS,
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
  ...WHAT_IF,
  ...CATALOG_ENDPOINTS,
  ...READERS,
  ...SERVICE,
  ...MARGINS,
  ...ADMIN_USERS,
  ...REQUESTS,
  ...WEBHOOKS,
  ...STRIPE,
];

/** The path that no route takes, for requests with an invalid host: the host could change their path. */
const NOWHERE = "/ ";

/**
 * The part of the surface at one address: `admin` has admin API, console and metrics, `public` the rest, `all` both. Each
 * part has the health pages.
 */
export type SurfacePart = "all" | "public" | "admin";

/** An app without routes. */
function newRoutes(): Hono {
  return new Hono({
    router: new KnownPathRouter(),
    getPath: (request) => namesHost(request) ? rawPathOf(request) : NOWHERE,
  });
}

/**
 * The HTTP surface of a service, or of the services of several databases, or a part of it.
 *
 * @param adminToken null: the admin API is off
 * @param console null: there is no console
 */
export function makeApp(
  services: Service | Stores,
  adminToken: string | null,
  console: ConsoleOptions | null = null,
  part: SurfacePart = "all",
): Hono {
  const app = newRoutes();
  const service = Stores.of(services);
  const admin = { token: adminToken, guesses: new Guesses() };
  if (part !== "admin") {
    mountKeyed(app, service);
    // What another process passes on is about the database of the channel.
    for (const each of service.services) each.handlePassed(passedHandlers(each));
    app.route("/", homeRoutes());
  }
  mountKeyless(app, service, admin, part);
  app.route("/", healthRoutes(service));
  if (part !== "admin") {
    app.route("/", referenceRoutes(SURFACE));
    app.route("/", toolRoutes(service));
    app.route("/", gatewayRoutes(service));
  }
  if (part !== "public") {
    app.route("/", metricsRoutes(service));
    if (console !== null) app.all("/console/*", consoleHandler(service, console, admin));
  }
  const strays = refusingRoutes(app, service, part === "public" ? null : admin);
  app.notFound(({ req, env }) => strays.fetch(req.raw, env));
  app.onError((error, context) => respondTo(context.req.raw, error));
  const { fetch } = app;
  app.fetch = (request, ...rest) =>
    request.method === "HEAD"
      ? answerHead(request, (asGet) => fetch(asGet, ...rest))
      : fetch(request, ...rest);
  return app;
}

/** Answers every request to the console. Its modules are loaded at the first one: most processes start for calls alone. */
function consoleHandler(service: Stores, options: ConsoleOptions, { guesses }: AdminAccess) {
  const load = async () => {
    const { consoleRoutes } = await import("./console/console.tsx");
    const routes = newRoutes();
    routes.route("/", consoleRoutes(service, options, guesses, ENDPOINTS, KEYLESS));
    routes.onError((error, { req }) => respondTo(req.raw, error));
    return routes;
  };
  let routes: Promise<Hono> | null = null;
  return async ({ req, env }: Context) => {
    const request = underOneId(req.raw);
    return completed(request, await (await (routes ??= load())).fetch(request, env));
  };
}

/** Mounts the calls with an API key. */
function mountKeyed(app: Hono, service: Stores): void {
  for (const endpoint of ENDPOINTS) {
    app.on(endpoint.method, `/api${endpoint.path}`, handlerOf(endpoint, service));
  }
  for (const [path, endpoints = []] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const methods = endpoints.filter(({ access }) => isForBrowsers(access)).map(({ method }) => method);
    if (methods.length === 0) continue;
    app.options(`/api${path}`, (context) => preflight(context, service, methods));
  }
}

/** Mounts the calls without an API key: those with the admin token, those open to everyone, or both. */
function mountKeyless(app: Hono, service: Stores, admin: AdminAccess, part: SurfacePart): void {
  for (const endpoint of KEYLESS) {
    if (part !== "all" && (endpoint.access === "admin") !== (part === "admin")) continue;
    const metrics = new RouteMetrics(service, endpoint.method, `/api${endpoint.path}`);
    app.on(
      endpoint.method,
      `/api${endpoint.path}`,
      (context) => handleKeyless(context, endpoint, service, admin, metrics),
    );
  }
}

/** Calls that processes make only to each other. */
const INTERNAL = [COUNT, nextUsage, reserveHold, changeHold] as readonly CallTarget<Serving>[];

/** Answers calls of other processes. */
function passedHandlers(service: Service): PassedHandlers {
  const targets = new Map([...ENDPOINTS, ...KEYLESS, ...INTERNAL].map((target) => [target.id, target]));
  const answer = (message: unknown) => {
    const { serving } = service;
    // The call may be sent to another process.
    return serving === null ? Promise.resolve(notRun(null)) : receive(serving, targets, message as Message);
  };
  return {
    onCall: (message) => answer(message) as Promise<Reply>,
    onRequest: async (message) => {
      const { head, body } = await answer(message);
      return { head, body: typeof body === "string" ? new Response(body).body : body };
    },
  };
}

/** Handles the requests of an endpoint. Only calls for browsers check the origin of a request. */
function handlerOf(endpoint: Endpoint<Serving>, service: Stores) {
  const metrics = new RouteMetrics(service, endpoint.method, `/api${endpoint.path}`, service);
  const answer = endpoint.id === streamUsage.id
    ? (context: Context) => handleStream(context, service, metrics)
    : (context: Context) => handle(context, endpoint, service, metrics);
  if (!isForBrowsers(endpoint.access)) return answer;
  return async (context: Context) => allowOrigin(context.req.raw, await answer(context), service);
}

/**
 * Refuses requests that no route of the app takes: for a known path with the methods that it takes. The paths are in an app
 * of their own, since a second handler on each route would slow every request down.
 */
function refusingRoutes(app: Hono, service: Stores, admin: AdminAccess | null): Hono {
  const ofCallers = new RouteMetrics(service, "any", NO_ROUTE, service);
  const ofOthers = new RouteMetrics(service, "any", NO_ROUTE);
  const refusing = newRoutes();
  const refuse = async (context: Context, methods: readonly string[]) => {
    const request = context.req.raw;
    const { path } = context.req;
    const isOfCaller = path.startsWith("/api/") && !path.startsWith("/api/admin/");
    const metrics = isOfCaller ? ofCallers : ofOthers;
    const startedAt = metrics.starts();
    const response = metrics.threw(startedAt, request, await strayOf(context, service, admin, methods));
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
 * Returns the refusal of a request that no route takes. The key is checked first, so that a caller without one learns nothing
 * about the routes.
 *
 * @param admin null at an address without the admin API
 * @param methods the methods of the path; none for an unknown path
 */
async function strayOf(
  { req: { raw: request, path }, env }: Context,
  service: Stores,
  admin: AdminAccess | null,
  methods: readonly string[],
): Promise<unknown> {
  try {
    if (!namesHost(request)) return invalidMember("Host", "invalid host");
    if (path.startsWith("/api/admin/")) {
      if (admin !== null) await authorizeAdmin(request, admin, service.requireServing(), addressOf(env));
    } else if (path.startsWith("/api/")) {
      await identify(request, service);
    }
  } catch (error) {
    return error;
  }
  return methods.length === 0 ? unknownPath(request) : methodNotAllowed(request.method, methods);
}
