// Service pages without a key: whether the process lives, whether it serves, and its gauges.

import { Hono } from "hono";
import { refusal } from "domain/refusal.ts";
import { success } from "routes/operation.ts";
import { headersOf, lastOf, refuse, requestId, respond } from "routes/respond.ts";
import { renderMetrics } from "src/metrics.ts";
import type { Service } from "src/service.ts";

/** `/healthz`, `/readyz` and `/metrics`. */
export function healthRoutes(service: Service): Hono {
  const app = new Hono();
  app.get("/healthz", ({ req }) => respond(req.raw, success({ status: "alive" })));
  app.get("/readyz", ({ req }) => {
    if (service.serving !== null) return respond(req.raw, success({ status: "serving" }));
    const refused = refusal("unavailable", "This process is not the writer", { status: service.state });
    const response = refuse(req.raw, refused);
    return service.state === "stopping" ? lastOf(response) : response;
  });
  app.get("/metrics", ({ req }) => {
    const headers = headersOf(requestId(req.raw), "text/plain; version=0.0.4; charset=utf-8");
    return new Response(renderMetrics(service), { headers });
  });
  return app;
}
