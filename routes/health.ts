// Service pages without a key: whether the process lives, whether it serves, and its gauges.

import { Hono } from "hono";
import { refusal } from "../src/domain/refusal.ts";
import { success, write } from "./answer.ts";
import { headersOf, lastOf, refuse, requestId, respond } from "./respond.ts";
import { makeMetrics } from "../src/observability/metrics.ts";
import type { Service } from "../src/service/service.ts";

/** `/healthz`, `/readyz` and `/metrics`. */
export function healthRoutes(service: Service): Hono {
  const app = new Hono();
  const metrics = makeMetrics(service);
  app.get("/healthz", ({ req }) => respond(req.raw, write(success({ status: "alive" }))));
  app.get("/readyz", ({ req }) => {
    if (service.serving !== null) return respond(req.raw, write(success({ status: "serving" })));
    const refused = refusal("unavailable", "This process is not the writer", { status: service.state });
    const response = refuse(req.raw, refused);
    return service.state === "stopping" ? lastOf(response) : response;
  });
  app.get("/metrics", async ({ req }) => {
    const headers = headersOf(requestId(req.raw), metrics.contentType);
    return new Response(await metrics.metrics(), { headers });
  });
  return app;
}
