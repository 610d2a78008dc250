// Service pages without a key: whether the process is alive, whether it is ready for calls, and its metrics.

import { Hono } from "hono";
import { refusal } from "../../src/domain/values/refusal.ts";
import { storedOf } from "./across_stores.ts";
import { success, write } from "./answer.ts";
import { headersOf, lastOf, refuse, requestId, respond } from "./respond.ts";
import { makeMetrics } from "../../src/operations/metrics/metrics.ts";
import type { ServiceState } from "../../src/cluster/service.ts";
import type { Stores } from "../../src/cluster/stores.ts";

/** `/healthz` and `/readyz`. */
export function healthRoutes(service: Stores): Hono {
  const app = new Hono();
  app.get("/healthz", ({ req }) => respond(req.raw, write(success({ status: "alive" }))));
  app.get("/readyz", ({ req }) => {
    const { state } = service;
    const shown = { status: state, ...statesOf(service) };
    if (service.isReady) return respond(req.raw, write(success(shown)));
    const refused = refusal("unavailable", whyNotReady(service), shown);
    const response = refuse(req.raw, refused);
    return state === "stopping" ? lastOf(response) : response;
  });
  return app;
}

/** `/metrics`. */
export function metricsRoutes(service: Stores): Hono {
  const app = new Hono();
  const { contentType, metrics } = makeMetrics(service.services);
  app.get("/metrics", async ({ req }) => {
    return new Response(await metrics(), { headers: headersOf(requestId(req.raw), contentType) });
  });
  return app;
}

const NOT_SERVING: Readonly<Record<Exclude<ServiceState, "serving">, string>> = {
  starting: "This process is starting, or has lost its database",
  copying: "The database is a standby of another one",
  standby: "This process waits until those of another version have ended",
  leaving: "This process is about to stop: others have its workspaces",
  stopping: "This process is stopping",
};

/** The state of each database, where there are several. */
function statesOf({ isOne, services }: Stores): { stores?: Record<string, string> } {
  if (isOne) return {};
  return { stores: Object.fromEntries(services.map(storedOf).map(({ name, state }) => [name, state])) };
}

function whyNotReady({ state, serving }: Stores): string {
  if (state !== "serving") return NOT_SERVING[state];
  if (serving === null) return "The database has not answered for a while";
  return "This process cannot reach the owners of some workspaces";
}
