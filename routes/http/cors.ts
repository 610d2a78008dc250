// Calls from browsers (CORS): only those that a public key may make, and only from the origins in the app's catalog. A
// preflight has no key, so it passes when any app lists the origin; the answer itself follows the key's own app. Keys come
// in a header that pages set, so credentials of the browser are never allowed.

import type { Context } from "hono";
import { MayNotAnswer } from "../../actors/port.ts";
import type { Access } from "../contract/definition.ts";
import { authenticate, type Source } from "./auth.ts";
import { requestId, respondTo } from "./respond.ts";

const PUBLIC_ACCESS: readonly Access[] = ["any", "any_user", "end_user", "token"];
const ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, X-End-User-Token, X-Request-Id";
const EXPOSED_HEADERS = "Idempotent-Replayed, Retry-After, X-Request-Id";
const PREFLIGHT_KEPT_S = "600";

/** Whether browsers may make a call. */
export function isForBrowsers(access: Access): boolean {
  return PUBLIC_ACCESS.includes(access);
}

/**
 * Answers a preflight. Any other OPTIONS request, and a preflight for more than browsers may do, is refused like an unknown
 * method.
 *
 * @param methods the methods of the calls for browsers at this path
 */
export function preflight(
  context: Context,
  source: { readonly serving: unknown; hasOrigin(origin: string): boolean },
  methods: readonly string[],
): Response | Promise<Response> {
  const request = context.req.raw;
  if (source.serving === null) return respondTo(request, new MayNotAnswer());
  const origin = request.headers.get("origin");
  const method = request.headers.get("access-control-request-method");
  const isAsked = origin !== null && method !== null && methods.includes(method);
  if (!isAsked || !source.hasOrigin(origin)) return context.notFound();
  const headers = {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": methods.join(", "),
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-max-age": PREFLIGHT_KEPT_S,
    "vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    "x-request-id": requestId(request),
  };
  return new Response(null, { status: 204, headers });
}

/** Lets a page read an answer, refusals too, where the key's app lists the page's origin. */
export function allowOrigin(request: Request, response: Response, source: Source<unknown>): Response {
  response.headers.append("vary", "Origin");
  const origin = request.headers.get("origin");
  if (origin !== null && isListed(request, origin, source)) {
    response.headers.set("access-control-allow-origin", origin);
    response.headers.set("access-control-expose-headers", EXPOSED_HEADERS);
  }
  return response;
}

function isListed(request: Request, origin: string, source: Source<unknown>): boolean {
  try {
    return authenticate(request, source).caller.realm.catalog.corsOrigins.has(origin);
  } catch {
    // An unknown key belongs to no app.
    return false;
  }
}
