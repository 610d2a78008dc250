// The OpenAPI document as a reader gets it, and validators of the schemas in it.

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import Ajv04 from "npm:ajv-draft-04@1.0.0";
import formats from "npm:ajv-formats@3.0.1";
import { SURFACE } from "../../../routes/surface.ts";
import recorded from "../../../routes/reference/examples.json" with { type: "json" };
import type { Recorded } from "../../../routes/reference/examples.ts";
import { makeDocument } from "../../../routes/reference/openapi.ts";

/** An operation of the document. */
interface OperationObject {
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

/** The members of the body that a call of a path takes, by their names. */
// deno-lint-ignore no-explicit-any -- any schema of the document
export function bodyMembers(path: string, method = "post"): Record<string, any> {
  const { schema } = document.paths[path][method].requestBody.content["application/json"];
  return document.components.schemas[schema.$ref.split("/").at(-1)].properties;
}

/** The validator of the schema at a place of the document, whatever its media type. */
export function validatorAt(...place: string[]): ValidateFunction {
  return compileAt(ajv, document, place);
}

/** The same for OpenAPI 3.0, which has schemas of an older draft. */
export function validatorsOf30(form: unknown): (...place: string[]) => ValidateFunction {
  // deno-lint-ignore no-explicit-any -- the package's types name no callable default
  const ajv = new (Ajv04 as any)({ strict: false, allErrors: true });
  // deno-lint-ignore no-explicit-any -- the package's types name no callable default
  (formats as any)(ajv);
  // Generators take null beside a reference; the validator wants it said in words of its own.
  const plain = JSON.parse(JSON.stringify(form), (_, value) => {
    return value?.nullable === true && value.allOf !== undefined
      ? { anyOf: [{ enum: [null] }, ...value.allOf] }
      : value;
  });
  ajv.addSchema(plain, "document");
  return (...place) => compileAt(ajv, plain, place);
}

// deno-lint-ignore no-explicit-any -- any part of the document
function compileAt(ajv: Ajv2020, document: any, place: readonly string[]): ValidateFunction {
  // deno-lint-ignore no-explicit-any -- any part of the document
  const { content } = place.reduce((part: any, step) => part[step], document);
  const steps = [...place, "content", Object.keys(content)[0] as string, "schema"];
  const pointer = steps.map((step) => step.replaceAll("~", "~0").replaceAll("/", "~1")).join("/");
  return ajv.compile({ $ref: `document#/${encodeURI(pointer)}` });
}
