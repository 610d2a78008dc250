// The HTTP surface: mounts what the other files of this folder define, and answers what no route matches.

import { type Context, Hono } from "hono";
import { ADMIN_ENDPOINTS, adminRoutes } from "./admin.ts";
import { authenticate, authorizeAdmin } from "./auth.ts";
import { COMPOSE } from "./compose.ts";
import { allowOrigin, isForBrowsers, preflight } from "./cors.ts";
import { CREDITS } from "./credits.ts";
import { CUSTOMERS } from "./customers.ts";
import { EVENTS } from "./events.ts";
import { DOWNLOAD_PATH, EXPORT, exportDownload } from "./export.ts";
import { healthRoutes } from "./health.ts";
import { namesHost } from "./host.ts";
import { toolRoutes } from "./mcp.ts";
import { METERING } from "./metering.ts";
import { type Endpoint, handle } from "./endpoint.ts";
import { PEOPLE } from "./people.ts";
import { PRIVACY } from "./privacy.ts";
import { PAGES } from "./reference/pages.ts";
import type { Surface } from "./reference/openapi.ts";
import { referenceRoutes } from "./reference/serve.ts";
import { respondTo } from "./respond.ts";
import { Refused } from "./errors.ts";
import { SUBSCRIPTIONS } from "./subscriptions.ts";
import { TEST_CLOCK } from "./test_clock.ts";
import { USERS } from "./users.ts";
import { NO_ROUTE, RouteWatch } from "./watch.ts";
import type { Service } from "../src/service/service.ts";

/** Every operation of the API. */
export const ENDPOINTS: readonly Endpoint<unknown>[] = [
  ...METERING,
  ...USERS,
  ...SUBSCRIPTIONS,
  ...CREDITS,
  ...CUSTOMERS,
  ...COMPOSE,
  ...PEOPLE,
  ...PRIVACY,
  ...EXPORT,
  ...EVENTS,
  ...TEST_CLOCK,
];

/** Everything that the reference shows. */
export const SURFACE: Surface = { operations: ENDPOINTS, admin: ADMIN_ENDPOINTS, pages: PAGES };

/** The path of a request that goes to no route, since its host would stand for a part of it. */
const NOWHERE = "/ ";

/** The whole HTTP surface of a service. */
export function makeApp(service: Service, adminToken: string | null): Hono {
  const { getPath } = new Hono();
  const app = new Hono({ getPath: (request) => namesHost(request) ? getPath(request) : NOWHERE });
  for (const definition of ENDPOINTS) {
    app.on(definition.method, `/api${definition.path}`, handlerOf(definition, service));
  }
  for (const [path, definitions = []] of Map.groupBy(ENDPOINTS, ({ path }) => path)) {
    const methods = definitions.filter(({ access }) => isForBrowsers(access)).map(({ method }) => method);
    if (methods.length === 0) continue;
    app.options(`/api${path}`, (context) => preflight(context, service, methods));
  }
  const download = `/api${DOWNLOAD_PATH}`;
  const downloads = new RouteWatch(service, "GET", download);
  app.get(download, (context) => exportDownload(context, service, downloads));
  app.route("/api/admin/v1", adminRoutes(service, adminToken));
  app.route("/", healthRoutes(service));
  app.route("/", referenceRoutes(SURFACE));
  app.route("/", toolRoutes(service, (request) => app.fetch(request)));
  // The paths stand in an app of their own: a second handler on each route would slow every request down.
  const paths = new Hono();
  const strays = new RouteWatch(service, "any", NO_ROUTE);
  for (const path of new Set(app.routes.map((route) => route.path))) {
    paths.all(path, (context) => refuseRoute(context, service, adminToken, strays, true));
  }
  paths.notFound((context) => refuseRoute(context, service, adminToken, strays, false));
  app.notFound(({ req }) => {
    if (namesHost(req.raw)) return paths.fetch(req.raw);
    const refused = new Refused("invalid_request", "The header Host names no host");
    return strays.threw(strays.starts(), req.raw, refused);
  });
  app.onError((error, context) => respondTo(context.req.raw, error));
  return app;
}

/** Only what browsers may call looks at where a request comes from. */
function handlerOf(definition: Endpoint<unknown>, service: Service) {
  const watch = new RouteWatch(service, definition.method, `/api${definition.path}`);
  if (!isForBrowsers(definition.access)) {
    return (context: Context) => handle(context, definition, service, watch);
  }
  return async (context: Context) =>
    allowOrigin(context.req.raw, await handle(context, definition, service, watch), service);
}

/** What no operation matches: the key is looked at first, so that a stranger learns nothing of the routes. */
function refuseRoute(
  { req }: Context,
  service: Service,
  adminToken: string | null,
  watch: RouteWatch,
  isKnownPath: boolean,
): Response {
  const startedAt = watch.starts();
  try {
    if (req.path.startsWith("/api/admin/")) {
      service.requireServing();
      authorizeAdmin(req.raw, adminToken);
    } else if (req.path.startsWith("/api/")) {
      authenticate(req.raw, service);
    }
    const code = isKnownPath ? "method_not_allowed" : "not_found";
    const message = isKnownPath ? `The path does not answer ${req.method}` : "Nothing answers at this path";
    throw new Refused(code, message);
  } catch (error) {
    return watch.threw(startedAt, req.raw, error);
  }
}
