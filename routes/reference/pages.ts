// What the reference says of what has no envelope of ours: the pages of the process itself, which need no key, and the
// calls of another API.

import { z } from "zod";
import type { CallDoc } from "../contract/definition.ts";

/** A page as the reference shows it. */
export interface Page {
  readonly path: string;
  /** null: JSON in the envelope. */
  readonly mediaType: string | null;
  readonly doc: CallDoc;
  /** What makes it a call of another API; left out for a page. */
  readonly foreign?: ForeignCall;
}

/** A call in the shape of another API, with a secret key. */
export interface ForeignCall {
  readonly method: "GET" | "POST";
  /** Null for a call without a body. */
  readonly body: z.ZodType | null;
  /** Headers that it takes, and those of its answer, by name. */
  readonly headers: Readonly<Record<string, ForeignHeader>>;
  readonly answerHeaders: Readonly<Record<string, string>>;
  /** The schema of its errors. */
  readonly error: z.ZodType;
}

interface ForeignHeader {
  readonly description: string;
}

/** Where the document and the reference page are. */
export const REFERENCE_PATHS = { document: "/api/openapi.json", page: "/docs" } as const;

/** What the first page says. */
export const HOME = {
  summary:
    "Metering and entitlements for products that resell AI: reserve quota before the work, settle it afterwards.",
  links: {
    reference: { path: REFERENCE_PATHS.page, text: "The reference of the API, to read" },
    document: { path: REFERENCE_PATHS.document, text: "The same as an OpenAPI document" },
    health: { path: "/healthz", text: "Whether this process lives" },
  },
} as const;

/** Every page that needs no key. */
export const PAGES: readonly Page[] = [
  {
    path: "/",
    mediaType: null,
    doc: {
      id: "getHome",
      tag: "Service",
      summary: "What this process is, and where to go from here",
      description: "With Accept: text/html, as browsers send it, a page.",
      answer: z.strictObject({
        name: z.literal("Holdfast"),
        summary: z.string(),
        links: z.strictObject({ reference: z.string(), document: z.string(), health: z.string() }),
      }),
      errors: [],
    },
  },
  {
    path: "/healthz",
    mediaType: null,
    doc: {
      id: "getHealth",
      tag: "Service",
      summary: "Whether the process lives",
      answer: z.strictObject({ status: z.literal("alive") }),
      errors: [],
    },
  },
  {
    path: "/readyz",
    mediaType: null,
    doc: {
      id: "getReadiness",
      tag: "Service",
      summary: "Whether the process serves calls",
      description:
        "A process that starts, hands its workspaces over, stops, waits for one of another version, or " +
        "cannot reach the owners of some workspaces is not ready. details.status says which, and the message why.",
      answer: z.strictObject({ status: z.literal("serving") }),
      errors: ["unavailable"],
    },
  },
  {
    path: "/metrics",
    mediaType: "text/plain",
    doc: {
      id: "getMetrics",
      tag: "Service",
      summary: "Gauges and counts of the process, as Prometheus text",
      answer: z.string(),
      errors: [],
    },
  },
  {
    path: REFERENCE_PATHS.document,
    mediaType: "application/json",
    doc: {
      id: "getOpenapi",
      tag: "Service",
      summary: "This document",
      answer: z.record(z.string(), z.unknown()),
      errors: [],
    },
  },
  {
    path: REFERENCE_PATHS.page,
    mediaType: "text/html",
    doc: {
      id: "getReference",
      tag: "Service",
      summary: "This reference, to read",
      answer: z.string(),
      errors: [],
    },
  },
];
