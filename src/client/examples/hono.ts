// A route of Hono, metered by a middleware: a status below 400 is charged, any other is not.

import process from "node:process";
import { Hono } from "hono";
import { createClient } from "holdfast-client";
import { meter } from "holdfast-client/hono";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;
const holdfast = createClient({ apiKey: HOLDFAST_KEY, baseUrl: HOLDFAST_URL });

const app = new Hono<{ Variables: { userId: string } }>();

app.use(async (context, next) => {
  context.set("userId", HOLDFAST_USER); // your own sign-in
  await next();
});
app.post(
  "/images",
  meter({ client: holdfast, userId: (context) => context.get("userId"), event: "image.render" }),
  async (context) => {
    const { what } = await context.req.json<{ what?: string }>();
    if (what === undefined) return context.json({ error: "what: is missing" }, 400);
    return context.json({ image: `an image of ${what}` });
  },
);
app.post(
  "/albums",
  meter({ client: holdfast, userId: (context) => context.get("userId"), event: "image.render", count: 1000 }),
  (context) => context.json({ images: 1000 }),
);

// Here the app calls itself; `serve(app)` of `@hono/node-server` puts it on a port.
for (const [path, body] of [["/images", { what: "a pond" }], ["/images", {}], ["/albums", {}]] as const) {
  const answer = await app.request(path, { method: "POST", body: JSON.stringify(body) });
  const { image, error } = await answer.json();
  console.log(path, answer.status, image ?? error.code ?? error);
}
const { counters } = await holdfast.usage(HOLDFAST_USER, "image.render");
console.log(`${counters[0]?.count} of ${counters[0]?.quota} used`);
