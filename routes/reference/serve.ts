// The document at `/api/openapi.json` and the reference page at `/docs`. Both need no key and no store. The page is Scalar,
// served by this process: its policy keeps the browser from loading anything from another host.

import { createHash } from "node:crypto";
import { type Context, Hono } from "hono";
import { inParts, isLong } from "../../src/process/downloads.ts";
import { headersOf, requestId } from "../http/respond.ts";
import { makeDocument, type Surface } from "./openapi.ts";
import { REFERENCE_PATHS } from "./pages.ts";

/** The version of Scalar in `scalar.js.gz`; the README here says how to replace it. */
const SCALAR_VERSION = "1.72.1";

const { document: DOCUMENT_PATH, page: PAGE_PATH } = REFERENCE_PATHS;
/** The path of Scalar. */
export const SCALAR_PATH = `${PAGE_PATH}/scalar-${SCALAR_VERSION}.js`;
const START_PATH = `${PAGE_PATH}/start.js`;

/**
 * Scalar breaks words in narrow columns, which makes error codes hard to read and to find. With this style a column is as
 * wide as its longest word, and a word breaks only if it does not fit on the page.
 */
const STYLE = "body .scalar-app .markdown, body .scalar-app .markdown :is(td, th, code) " +
  "{ word-break: normal; overflow-wrap: break-word }";

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Holdfast API</title>
    <link rel="icon" href="data:,">
    <style>${STYLE}</style>
  </head>
  <body>
    <div id="reference"></div>
    <script src="${SCALAR_PATH}"></script>
    <script src="${START_PATH}"></script>
  </body>
</html>
`;

/** Turns everything off that would call another host. The policy below enforces it. */
const CONFIGURATION = {
  url: DOCUMENT_PATH,
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  persistAuth: false,
  agent: { disabled: true, hideAddApi: true },
  mcp: { disabled: true },
};

/** Test requests, and the examples to copy, go to the host of the page. */
const START = `Scalar.createApiReference("#reference", {
  ...${JSON.stringify(CONFIGURATION)},
  servers: [{ url: location.origin }],
});
`;

/** Scripts and calls are limited to this host. Scalar sets inline styles, and its icons are data URLs. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const REVALIDATE = "no-cache";
const FOR_A_YEAR = "public, max-age=31536000, immutable";

/** The routes of the reference. */
export function referenceRoutes(surface: Surface): Hono {
  const app = new Hono();
  const document = once(() => Promise.resolve(tagged(JSON.stringify(makeDocument(surface)))));
  const page = tagged(PAGE);
  const start = tagged(START);
  const scalar = once(readScalar);
  app.get(DOCUMENT_PATH, async (context) => {
    return await answer(context, await document(), "application/json; charset=UTF-8", REVALIDATE);
  });
  app.get(PAGE_PATH, async (context) => {
    const response = await answer(context, page, "text/html; charset=UTF-8", REVALIDATE);
    response.headers.set("content-security-policy", POLICY);
    response.headers.set("x-frame-options", "DENY");
    return response;
  });
  app.get(START_PATH, (context) => answer(context, start, "text/javascript; charset=UTF-8", REVALIDATE));
  app.get(SCALAR_PATH, async (context) => {
    return await answer(context, await scalar(), "text/javascript; charset=UTF-8", FOR_A_YEAR);
  });
  return app;
}

/** Content with its entity tag: the same bytes always have the same tag. */
interface Tagged {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly etag: string;
  /** The content of bytes that are gzip; null for any others. */
  readonly unpacked: (() => Promise<Uint8Array<ArrayBuffer>>) | null;
}

function tagged(content: string | Uint8Array<ArrayBuffer>): Tagged {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { bytes, etag, unpacked: typeof content === "string" ? null : once(() => unpack(bytes)) };
}

async function unpack(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).bytes();
}

/** Scalar as gzip. It is loaded at the first visit, to save memory before. */
async function readScalar(): Promise<Tagged> {
  const { default: bytes } = await import("./scalar.js.gz", { with: { type: "bytes" } });
  return tagged(bytes);
}

/** Answers with bytes that all answers share: those without a key could otherwise fill the memory by reading none. */
async function answer(
  { req }: Context,
  { bytes, etag, unpacked }: Tagged,
  type: string,
  caching: string,
): Promise<Response> {
  const headers = {
    ...headersOf(requestId(req.raw), type),
    etag,
    "cache-control": caching,
    ...unpacked === null ? {} : { vary: "Accept-Encoding" },
  };
  if (matches(req.header("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  const send = (sent: Uint8Array<ArrayBuffer>, more: Readonly<Record<string, string>> = {}) =>
    new Response(isLong(sent) ? inParts(sent) : sent, {
      headers: { ...headers, "content-length": String(sent.length), ...more },
    });
  if (unpacked === null) return send(bytes);
  return /\bgzip\b/.test(req.header("accept-encoding") ?? "")
    ? send(bytes, { "content-encoding": "gzip" })
    : send(await unpacked(), { etag: `W/${etag}` });
}

/** Whether the caller has the bytes already. Compressing proxies may have made the tag weak. */
function matches(presented: string | undefined, etag: string): boolean {
  const tags = (presented ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => made ??= make();
}
