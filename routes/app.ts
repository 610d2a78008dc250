// The HTTP surface: mounts what the other files of this folder define, and answers what no route matches.

import { type Context, Hono } from "hono";
import { Unavailable } from "actors/port.ts";
import { adminRoutes } from "routes/admin.ts";
import { authenticate, authorizeAdmin } from "routes/auth.ts";
import { COMPOSE } from "routes/compose.ts";
import { CREDITS } from "routes/credits.ts";
import { CUSTOMERS } from "routes/customers.ts";
import { EVENTS } from "routes/events.ts";
import { DOWNLOAD_PATH, EXPORT, exportDownload } from "routes/export.ts";
import { healthRoutes } from "routes/health.ts";
import { METERING } from "routes/metering.ts";
import { handle, type Operation } from "routes/operation.ts";
import { PEOPLE } from "routes/people.ts";
import { PRIVACY } from "routes/privacy.ts";
import { Refused } from "routes/errors.ts";
import { respondTo } from "routes/respond.ts";
import { SUBSCRIPTIONS } from "routes/subscriptions.ts";
import { TEST_CLOCK } from "routes/test_clock.ts";
import { USERS } from "routes/users.ts";
import { NO_ROUTE, RouteWatch } from "routes/watch.ts";
import type { Service } from "src/service.ts";

/** Every operation of the API. */
export const OPERATIONS: readonly Operation<unknown>[] = [
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

/** The whole HTTP surface of a service. */
export function makeApp(service: Service, adminToken: string | null): Hono {
  const app = new Hono();
  for (const definition of OPERATIONS) {
    const path = `/api${definition.path}`;
    const watch = new RouteWatch(service, definition.method, path);
    app.on(definition.method, path, (context) => handle(context, definition, service, watch));
  }
  const download = `/api${DOWNLOAD_PATH}`;
  const downloads = new RouteWatch(service, "GET", download);
  app.get(download, (context) => exportDownload(context, service, downloads));
  app.route("/api/admin/v1", adminRoutes(service, adminToken));
  app.route("/", healthRoutes(service));
  // The paths stand in an app of their own: a second handler on each route would slow every request down.
  const paths = new Hono();
  const strays = new RouteWatch(service, "any", NO_ROUTE);
  for (const path of new Set(app.routes.map((route) => route.path))) {
    paths.all(path, (context) => refuseRoute(context, service, adminToken, strays, true));
  }
  paths.notFound((context) => refuseRoute(context, service, adminToken, strays, false));
  app.notFound((context) => paths.fetch(context.req.raw));
  app.onError((error, context) => respondTo(context.req.raw, error));
  return app;
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
      if (service.serving === null) throw new Unavailable("This process is not the writer");
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
