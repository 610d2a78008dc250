// Converts the document to OpenAPI 3.0, for tools that do not read 3.1. Where 3.0 cannot express something, the result
// says less, never something else.

import type { JsonSchema } from "./json_schema.ts";

const VERSION = "3.0.3";

/** Converts a document of 3.1 to 3.0. Webhooks are left out: 3.0 does not have them. */
export function toOpenApi30(document: JsonSchema): JsonSchema {
  const { openapi: _, webhooks: _webhooks, info, components, ...rest } = document;
  const { summary: _summary, license, ...shownInfo } = info as JsonSchema;
  const { name } = license as { readonly name: string };
  const { schemas, ...shared } = components as JsonSchema;
  return {
    openapi: VERSION,
    info: { ...shownInfo, license: { name } },
    ...converted(rest) as JsonSchema,
    components: { schemas: eachSchema(schemas), ...converted(shared) as JsonSchema },
  };
}

/** Converts the schemas inside a part of the document. Examples are data and stay. */
function converted(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(converted);
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => {
      if (name === "example" || name === "examples") return [name, value];
      return [name, name === "schema" ? schemaOf30(value as JsonSchema) : converted(value)];
    }),
  );
}

function eachSchema(schemas: unknown): JsonSchema {
  return Object.fromEntries(
    Object.entries(schemas as Record<string, JsonSchema>).map(([name, schema]) => [name, schemaOf30(schema)]),
  );
}

/** Converts a schema and the schemas inside it. */
function schemaOf30(schema: JsonSchema): JsonSchema {
  // 3.0 ignores members next to a reference.
  if (schema.$ref !== undefined) return { $ref: schema.$ref };
  const { type, anyOf, oneOf, const: value, enum: enumeration, description, ...rest } = schema;
  const { examples, exclusiveMinimum, properties, items, additionalProperties, ...others } = rest;
  const union = unionOf30((anyOf ?? oneOf ?? []) as readonly JsonSchema[]);
  return {
    ...others,
    ...typeOf30(type),
    ...Array.isArray(examples) ? { example: examples[0] } : {},
    ...exclusiveMinimum === undefined ? {} : { minimum: exclusiveMinimum, exclusiveMinimum: true },
    ...properties === undefined ? {} : { properties: eachSchema(properties) },
    ...items === undefined ? {} : { items: schemaOf30(items as JsonSchema) },
    ...typeof additionalProperties === "object"
      ? { additionalProperties: schemaOf30(additionalProperties as JsonSchema) }
      : additionalProperties === undefined
      ? {}
      : { additionalProperties },
    ...union,
    ...description30([description, union.description], isText(value) ? [value] : enumeration),
  };
}

/**
 * Adds the possible values of a string to its description. As an enum, generated clients would check them and refuse values
 * that a later version adds.
 */
function description30(descriptions: readonly unknown[], values: unknown): JsonSchema {
  const texts = descriptions.filter(isText);
  const listed = Array.isArray(values) ? [`One of: ${values.join(", ")}`] : [];
  return texts.length + listed.length === 0 ? {} : { description: [...texts, ...listed].join(". ") };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** Converts types: 3.0 allows one type for a schema, and has no type for null. */
function typeOf30(type: unknown): JsonSchema {
  if (type === undefined) return {};
  const types = Array.isArray(type) ? type : [type];
  const others = types.filter((name) => name !== "null");
  // Only null, or values of several types: any value.
  if (others.length !== 1) return {};
  return { type: others[0], ...others.length < types.length ? { nullable: true } : {} };
}

/** Converts a union; null among its parts becomes `nullable`. */
function unionOf30(parts: readonly JsonSchema[]): JsonSchema {
  if (parts.length === 0) return {};
  const others = parts.filter(({ type }) => type !== "null");
  const isNullable = others.length < parts.length ? { nullable: true } : {};
  // A union of time and date becomes a time.
  if (others.every(({ type, format }) => type === "string" && format !== undefined)) {
    return { ...schemaOf30(others[0] as JsonSchema), ...isNullable };
  }
  // A time or a name is a text.
  if (others.length > 1 && others.every(({ type }) => type === "string")) {
    return { type: "string", ...isNullable };
  }
  // Generators for 3.0 name a class for a union without writing it. Without a schema they use a dictionary.
  if (others.length > 1) return {};
  const [only] = others as [JsonSchema];
  // 3.0 ignores `nullable` next to a reference, so it goes around it.
  return only.$ref === undefined
    ? { ...schemaOf30(only), ...isNullable }
    : { allOf: [schemaOf30(only)], ...isNullable };
}
