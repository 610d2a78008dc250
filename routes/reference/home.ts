// `GET /`: the start page, as HTML for people and as JSON for programs. It needs no key, loads nothing and runs no script.

import { createHash } from "node:crypto";
import { Hono } from "hono";
import { success, write } from "../http/answer.ts";
import { HOME, type HomeAnswer } from "./pages.ts";
import { headersOf, requestId, respond } from "../http/respond.ts";

const STYLE = `
  :root { color-scheme: light dark }
  body { max-width: 40rem; margin: 12vh auto; padding: 0 1.5rem; font: 1.05rem/1.6 system-ui, sans-serif }
  dt { margin-top: 1rem; font-weight: 600 }
  dd { margin: 0 }
`;

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Holdfast</title>
    <link rel="icon" href="data:,">
    <style>${STYLE}</style>
  </head>
  <body>
    <h1>Holdfast</h1>
    <p>${HOME.summary}</p>
    <dl>
      ${
  Object.values(HOME.links).map(({ path, text }) => `<dt><a href="${path}">${path}</a></dt><dd>${text}</dd>`)
    .join("\n      ")
}
    </dl>
    <p>The README of this release shows how to create an app, apply a catalog and send the first call.</p>
  </body>
</html>
`;

/** Allows the style above, and nothing else. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The route of the first page. */
export function homeRoutes(): Hono {
  const app = new Hono();
  const { reference, document, health } = HOME.links;
  const links = { reference: reference.path, document: document.path, health: health.path };
  const answer = write(success<HomeAnswer>({ name: "Holdfast", summary: HOME.summary, links }));
  app.get("/", ({ req }) => {
    const response = prefersPage(req.header("accept") ?? "")
      ? new Response(PAGE, {
        headers: {
          ...headersOf(requestId(req.raw), "text/html; charset=UTF-8"),
          "content-security-policy": POLICY,
          "x-frame-options": "DENY",
        },
      })
      : respond(req.raw, answer);
    response.headers.set("vary", "Accept");
    return response;
  });
  return app;
}

/** Whether the client names HTML and prefers it to JSON, or wants both alike. Browsers name it; programs accept anything. */
function prefersPage(accept: string): boolean {
  return qualityOf(accept, "text/html") > 0 &&
    qualityOf(accept, "text/html") >= qualityOf(accept, "application/json");
}

/** The quality of a media type that is listed by its name; 0 if it is not listed. */
function qualityOf(accept: string, type: string): number {
  for (const part of accept.toLowerCase().split(",")) {
    const [name, ...parameters] = part.split(";").map((text) => text.trim());
    if (name !== type) continue;
    const quality = parameters.find((parameter) => parameter.startsWith("q="));
    return quality === undefined ? 1 : Number(quality.slice("q=".length)) || 0;
  }
  return 0;
}
