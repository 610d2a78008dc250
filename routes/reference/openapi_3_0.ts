// The document in the words of OpenAPI 3.0, for tools that read no 3.1. JSON Schema of 2020-12 becomes what 3.0 had
// before it. Where 3.0 has no words for something the form says less, never something else.

import type { JsonSchema } from "./json_schema.ts";

const VERSION = "3.0.3";

/** A document of 3.1 in the form of 3.0. Webhooks are left out, which 3.0 does not know. */
export function toOpenApi30(document: JsonSchema): JsonSchema {
  const { openapi: _, webhooks: _webhooks, info, components, ...rest } = document;
  const { summary: _summary, license, ...told } = info as JsonSchema;
  const { name } = license as { readonly name: string };
  const { schemas, ...shared } = components as JsonSchema;
  return {
    openapi: VERSION,
    info: { ...told, license: { name } },
    ...converted(rest) as JsonSchema,
    components: { schemas: eachSchema(schemas), ...converted(shared) as JsonSchema },
  };
}

/** A part of a document outside of schemas, with the schemas in it converted. Examples are data and stay. */
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

/** One schema and those inside it. */
function schemaOf30(schema: JsonSchema): JsonSchema {
  // 3.0 ignores what stands beside a reference.
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
 * A description with the values that a text has. As a list they would be checked by the clients, which then refuse what
 * a later version adds to them.
 */
function description30(descriptions: readonly unknown[], values: unknown): JsonSchema {
  const told = descriptions.filter(isText);
  const listed = Array.isArray(values) ? [`One of: ${values.join(", ")}`] : [];
  return told.length + listed.length === 0 ? {} : { description: [...told, ...listed].join(". ") };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** 3.0 has one type for a schema and no type for null. */
function typeOf30(type: unknown): JsonSchema {
  if (type === undefined) return {};
  const types = Array.isArray(type) ? type : [type];
  const others = types.filter((name) => name !== "null");
  // Nothing but null, or values of several kinds: any value.
  if (others.length !== 1) return {};
  return { type: others[0], ...others.length < types.length ? { nullable: true } : {} };
}

/** Parts of a union, of which one may be null; nothing for no parts. */
function unionOf30(parts: readonly JsonSchema[]): JsonSchema {
  if (parts.length === 0) return {};
  const others = parts.filter(({ type }) => type !== "null");
  const isNullable = others.length < parts.length ? { nullable: true } : {};
  // A time, or a date: any time is taken.
  if (others.every(({ type, format }) => type === "string" && format !== undefined)) {
    return { ...schemaOf30(others[0] as JsonSchema), ...isNullable };
  }
  // Generators of that age name a class for a union and do not write it. Any value is a dictionary to them.
  if (others.length > 1) return {};
  const [only] = others as [JsonSchema];
  // A null beside a reference has to stand around it.
  return only.$ref === undefined
    ? { ...schemaOf30(only), ...isNullable }
    : { allOf: [schemaOf30(only)], ...isNullable };
}
