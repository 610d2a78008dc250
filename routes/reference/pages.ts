// Pages of the process, and calls in the shape of another API, as the reference shows them.

import { z } from "zod";
import type { CallDoc } from "../contract/definition.ts";

/** A page of the process. */
export interface Page {
  readonly path: string;
  /** null: JSON in the envelope. */
  readonly mediaType: string | null;
  readonly doc: CallDoc;
  /** Set for a call of another API. */
  readonly foreign?: ForeignCall;
}

/** A call in the shape of another API, with a secret key. */
export interface ForeignCall {
  readonly method: "GET" | "POST";
  /** Null for a call without a body. */
  readonly body: z.ZodType | null;
  /** Headers of the request, and of the answer, by name. */
  readonly headers: Readonly<Record<string, ForeignHeader>>;
  readonly answerHeaders: Readonly<Record<string, string>>;
  /** The schema of its errors. */
  readonly error: z.ZodType;
  /** The status of errors that other calls answer with 503. */
  readonly unavailable?: number;
  /** The media type of its body, if it is not JSON. */
  readonly bodyType?: string;
  /** Parameters within its path: schemas by name. */
  readonly parameters?: Readonly<Record<string, z.ZodType>>;
}

interface ForeignHeader {
  readonly description: string;
}

/** The paths of the document and of the reference page. */
export const REFERENCE_PATHS = { document: "/api/openapi.json", page: "/docs" } as const;

/** The texts of the start page. */
export const HOME = {
  summary:
    "Metering and entitlements for products that resell AI: reserve quota before the work, settle it afterwards.",
  links: {
    reference: { path: REFERENCE_PATHS.page, text: "The API reference" },
    document: { path: REFERENCE_PATHS.document, text: "The OpenAPI document" },
    health: { path: "/healthz", text: "Whether this process is alive" },
  },
} as const;

const homeAnswer = z.strictObject({
  name: z.literal("Holdfast"),
  summary: z.string(),
  links: z.strictObject({ reference: z.string(), document: z.string(), health: z.string() }),
});

/** The JSON of the start page. */
export type HomeAnswer = z.infer<typeof homeAnswer>;

/** Every page that needs no key. */
export const PAGES: readonly Page[] = [
  {
    path: "/",
    mediaType: null,
    doc: {
      id: "getHome",
      tag: "Service",
      summary: "Get the start page",
      description: "JSON, or a page with Accept: text/html, as browsers send it.",
      answer: homeAnswer,
      errors: [],
    },
  },
  {
    path: "/healthz",
    mediaType: null,
    doc: {
      id: "getHealth",
      tag: "Service",
      summary: "Check that the process is alive",
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
      summary: "Check that the process serves calls",
      description:
        "A process is not ready while it starts, hands its workspaces over, stops, waits for a process of another " +
        "version, or cannot reach the owners of some workspaces. details.status is its state, the message the reason.",
      answer: z.strictObject({
        status: z.literal("serving"),
        stores: z.record(z.string(), z.string()).optional().describe(
          "The state of each database of HOLDFAST_DATABASES",
        ),
      }),
      errors: ["unavailable"],
    },
  },
  {
    path: "/metrics",
    mediaType: "text/plain",
    doc: {
      id: "getMetrics",
      tag: "Service",
      summary: "Get the metrics of the process, as Prometheus text",
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
      summary: "Get this document",
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
      summary: "Get this reference as a page",
      answer: z.string(),
      errors: [],
    },
  },
];
