// What the reference says of pages that no key opens: those of the process itself, and the download of an export,
// whose token is its authorisation.

import { z } from "zod";
import { DOWNLOAD_DOC, DOWNLOAD_PATH } from "../export.ts";
import type { EndpointDoc } from "./doc.ts";

/** A page as the reference shows it. */
export interface Page {
  readonly path: string;
  readonly query?: z.ZodObject;
  /** null: JSON in the envelope. */
  readonly mediaType: string | null;
  readonly doc: EndpointDoc;
}

/** Where the document and the reference page are. */
export const REFERENCE_PATHS = { document: "/api/openapi.json", page: "/docs" } as const;

/** Every page that needs no key. */
export const PAGES: readonly Page[] = [
  {
    path: `/api${DOWNLOAD_PATH}`,
    query: z.object({ token: z.string() }),
    mediaType: "application/json",
    doc: DOWNLOAD_DOC,
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
      description: "A standby, and a process that starts or stops, is not ready; details.status says which.",
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
