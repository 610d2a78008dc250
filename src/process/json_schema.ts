// JSON Schemas of model answers: whether an answer matches, and whether a model server's strict mode accepts the schema.

import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ComposeType } from "../domain/catalog/catalog.ts";
import { messageOf } from "./log.ts";

export type JsonObject = Record<string, unknown>;

/** Reads an answer: returns the object, or null when it does not match. */
export type OutputReader = (text: string) => JsonObject | null;

/** Compiled schemas: a reader, or why the schema can't be used. */
const compiledSchemas = new WeakMap<Readonly<JsonObject>, OutputReader | string>();

/** Returns the reader of a type's answers; null for a schema that can't be used. */
export function outputReaderOf({ outputSchema }: Pick<ComposeType, "outputSchema">): OutputReader | null {
  const compiled = compiledOnce(outputSchema);
  return typeof compiled === "string" ? null : compiled;
}

/** Returns why a schema can't be used, or null. The first call for a schema takes up to some tenths of a second. */
export function schemaFault(schema: Readonly<JsonObject>): string | null {
  const compiled = compiledOnce(schema);
  return typeof compiled === "string" ? compiled : null;
}

/** Compiling is slow, so an applied catalog reuses what its check compiled, by the identity of the schema object. */
function compiledOnce(schema: Readonly<JsonObject>): OutputReader | string {
  let compiled = compiledSchemas.get(schema);
  if (compiled === undefined) compiledSchemas.set(schema, compiled = compileReader(schema));
  return compiled;
}

/** Objects of a schema, on all its levels. */
const OBJECTS_MAX = 1_000;
const OLDER_DRAFT = /draft-0[3-7]/;
/**
 * Formats are annotations, and unknown keywords are ignored, as the standard says. The generated code is not optimised and
 * references are not inlined: both take time that grows with the square of the schema.
 */
const OPTIONS = {
  strict: false,
  validateFormats: false,
  logger: false,
  inlineRefs: false,
  code: { optimize: false },
} as const;

/**
 * Checks schemas, one for each draft. It keeps the compiled schema of the draft alone: compiling that takes longer than
 * compiling most schemas.
 */
const dialects = new Map<typeof Ajv | typeof Ajv2020, Ajv | Ajv2020>();

function dialectOf(Draft: typeof Ajv | typeof Ajv2020): Ajv | Ajv2020 {
  let dialect = dialects.get(Draft);
  if (dialect === undefined) dialects.set(Draft, dialect = new Draft(OPTIONS));
  return dialect;
}

/** The reader, or why the schema can't be used. */
function compileReader({ $schema, ...schema }: Readonly<JsonObject>): OutputReader | string {
  if (countObjects(schema) > OBJECTS_MAX) return `must not have more than ${OBJECTS_MAX} objects`;
  try {
    const Draft = OLDER_DRAFT.test(String($schema)) ? Ajv : Ajv2020;
    dialectOf(Draft).validateSchema(schema, true);
    // A compiler of its own: by their `$id`, the schemas of different catalogs would meet in a common one.
    const matches = new Draft({ ...OPTIONS, validateSchema: false }).compile(schema);
    return (text) => readOutput(text, (value) => matches(value) === true);
  } catch (error) {
    return `cannot be used: ${messageOf(error)}`;
  }
}

function countObjects(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>(
    (sum, part) => sum + countObjects(part),
    isObject(value) ? 1 : 0,
  );
}

/** A value nested so deeply that its check runs out of stack does not match either. */
function readOutput(text: string, matches: (value: unknown) => boolean): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && matches(value) ? value : null;
  } catch {
    return null;
  }
}

/** The keywords that every model server's strict mode accepts; it refuses schemas with others. */
const STRICT_KEYWORDS = new Set([
  "$defs",
  "$ref",
  "$schema",
  "additionalProperties",
  "anyOf",
  "const",
  "description",
  "enum",
  "items",
  "properties",
  "required",
  "title",
  "type",
]);

/** Whether a schema fits strict mode: closed objects, all members required, no other keywords. */
export function isStrictSchema(schema: Readonly<JsonObject>): boolean {
  return schema.type === "object" && schema.anyOf === undefined && fitsStrict(schema);
}

function fitsStrict(schema: unknown): boolean {
  if (!isObject(schema) || Object.keys(schema).some((name) => !STRICT_KEYWORDS.has(name))) return false;
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = schema;
  const isOfObjects = properties !== undefined || [type].flat().includes("object");
  if (isOfObjects) {
    const names = isObject(properties) ? Object.keys(properties) : [];
    const isComplete = Array.isArray(required) && names.every((name) => required.includes(name));
    if (additionalProperties !== false || !isComplete) return false;
  }
  const parts = [properties, $defs].flatMap((named) => isObject(named) ? Object.values(named) : []);
  if (items !== undefined) parts.push(items);
  if (Array.isArray(anyOf)) parts.push(...anyOf);
  return parts.every(fitsStrict);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
