// The OpenAPI document as a reader gets it, and validators of the schemas in it.

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "npm:ajv-formats@3.0.1";
import { SURFACE } from "../../../routes/app.ts";
import recorded from "../../../routes/reference/examples.json" with { type: "json" };
import type { Recorded } from "../../../routes/reference/examples.ts";
import { makeDocument } from "../../../routes/reference/openapi.ts";

/** An operation of the document. */
export interface OperationObject {
  readonly operationId: string;
  readonly security: readonly Record<string, unknown>[];
  readonly responses: Record<string, unknown>;
  readonly requestBody?: unknown;
}

export const document = JSON.parse(JSON.stringify(makeDocument(SURFACE)));

/** What the tour recorded, by operation. */
export const examples = recorded as Readonly<Record<string, Recorded>>;

export const ajv = new Ajv2020({ strict: false, allErrors: true });
// deno-lint-ignore no-explicit-any -- the package's types name no callable default
(formats as any)(ajv);
ajv.addSchema(document, "document");

/** Every operation of the document with its place. */
export function* operationObjects(): Iterable<{ path: string; method: string; operation: OperationObject }> {
  for (const [path, item] of Object.entries<Record<string, OperationObject>>(document.paths)) {
    for (const [method, operation] of Object.entries(item)) yield { path, method, operation };
  }
}

/** The validator of the schema at a place of the document, of JSON or of whatever else stands there. */
export function validatorAt(...place: string[]): ValidateFunction {
  // deno-lint-ignore no-explicit-any -- any part of the document
  const { content } = place.reduce((part: any, step) => part[step], document);
  const steps = [...place, "content", Object.keys(content)[0] as string, "schema"];
  const pointer = steps.map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1")).join("/");
  return ajv.compile({ $ref: `document#/${encodeURI(pointer)}` });
}
