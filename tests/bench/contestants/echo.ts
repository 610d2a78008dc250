// The ceiling: Hono parses the reserve's JSON body and answers JSON of the same shape, and nothing else happens.
import { Hono } from "hono";
import { type Contestant, serveBaseline, startBaseline } from "../contestant.ts";

/** Bare Hono. */
export const echo: Contestant = {
  name: "echo",
  start: (bench) => startBaseline(bench, import.meta.url, ["--allow-net=127.0.0.1"]),
};

if (import.meta.main) {
  const app = new Hono();
  app.post("/api/v1/reserve", async (c) => {
    const { count } = await c.req.json();
    const groups = [{ groupId: "lg_bench_images", unit: "count", quota: 1_000_000_000, current: count }];
    const data = {
      allowed: true,
      reservationId: "rsv_0123456789abcdef",
      expiresAt: "2026-01-01T00:00:00.000Z",
      groups,
    };
    return c.json({ ok: true, data });
  });
  await serveBaseline(app);
}
