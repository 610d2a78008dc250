// Service pages without a key: whether the process is alive, whether it is ready for calls, and its metrics.

import { Hono } from "hono";
import { refusal } from "../../src/domain/values/refusal.ts";
import { success, write } from "./answer.ts";
import { headersOf, lastOf, refuse, requestId, respond } from "./respond.ts";
import { makeMetrics } from "../../src/operations/metrics/metrics.ts";
import type { Service, ServiceState } from "../../src/cluster/service.ts";

/** `/healthz` and `/readyz`. */
export function healthRoutes(service: Service): Hono {
  const app = new Hono();
  app.get("/healthz", ({ req }) => respond(req.raw, write(success({ status: "alive" }))));
  app.get("/readyz", ({ req }) => {
    const { state } = service;
    if (service.isReady) return respond(req.raw, write(success({ status: state })));
    const refused = refusal("unavailable", whyNotReady(service), { status: state });
    const response = refuse(req.raw, refused);
    return state === "stopping" ? lastOf(response) : response;
  });
  return app;
}

/** `/metrics`. */
export function metricsRoutes(service: Service): Hono {
  const app = new Hono();
  const metrics = makeMetrics(service);
  app.get("/metrics", async ({ req }) => {
    const headers = headersOf(requestId(req.raw), metrics.contentType);
    return new Response(await metrics.metrics(), { headers });
  });
  return app;
}

const NOT_SERVING: Readonly<Record<Exclude<ServiceState, "serving">, string>> = {
  starting: "This process is starting, or has lost its database",
  standby: "This process waits until those of another version have ended",
  leaving: "This process is about to stop: others have its workspaces",
  stopping: "This process is stopping",
};

function whyNotReady({ state, serving }: Service): string {
  if (state !== "serving") return NOT_SERVING[state];
  if (serving === null) return "The database has not answered for a while";
  return "This process cannot reach the owners of some workspaces";
}
