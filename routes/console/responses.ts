// The responses of the console, with the headers that protect them, and which addresses are valid.

import type { Child } from "hono/jsx";
import { refuseForeignEscapes } from "../http/body.ts";
import type { Download } from "./parts/page_context.ts";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Whether every escape in an address encodes valid text; others could be read as another ID. */
export function isReadable(url: string): boolean {
  try {
    for (const part of url.split(/[/?&=]/)) refuseForeignEscapes(part, "");
    return true;
  } catch {
    return false;
  }
}

/** A page, or a part of one. */
export function html(content: Child, status: number, before = ""): Response {
  const headers = { "content-type": "text/html; charset=UTF-8" };
  return secured(new Response(before + String(content), { status, headers }));
}

/** Leads to another page, which is asked for with GET. */
export function redirect(to: string): Response {
  return secured(new Response(null, { status: 303, headers: { location: to } }));
}

/** A file to save. */
export function download({ name, type, text }: Download): Response {
  const headers = {
    "content-type": type,
    "content-disposition": `attachment; filename="${name.replaceAll(/[^\w.-]/g, "_")}"`,
  };
  return secured(new Response(text, { headers }));
}

/** Adds the headers that each response of the console carries. */
export function secured(response: Response): Response {
  const { headers } = response;
  headers.set("cache-control", "no-store");
  headers.set("content-security-policy", POLICY);
  headers.set("x-frame-options", "DENY");
  headers.set("x-content-type-options", "nosniff");
  headers.set("referrer-policy", "same-origin");
  return response;
}
