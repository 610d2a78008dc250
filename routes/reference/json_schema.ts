// Schemas of the wire as JSON Schema (2020-12, the dialect of OpenAPI 3.1). Records with an id become components
// that others refer to.

import { z } from "zod";
import { SHOWN_AS } from "routes/schemas/fields.ts";

export type JsonSchema = Record<string, unknown>;

/** Turns schemas into JSON Schema and gathers the records that they refer to. */
export class SchemaWriter {
  readonly components: Record<string, JsonSchema> = {};

  /** A schema as a caller sees it: what may be sent, or what is answered. */
  write(schema: z.ZodType): JsonSchema {
    const { $defs = {}, $schema: _, ...written } = z.toJSONSchema(schema, {
      io: "input",
      unrepresentable: "any",
      override: ({ zodSchema, jsonSchema }) => show(zodSchema, jsonSchema),
    });
    for (const [name, record] of Object.entries($defs)) {
      const { id: _, ...component } = record as JsonSchema;
      this.components[name] = withComponentRefs(component) as JsonSchema;
    }
    const { id: _id, ...whole } = withComponentRefs(written) as JsonSchema;
    return whole;
  }
}

function show(zodSchema: z.core.$ZodType, jsonSchema: JsonSchema): void {
  const shown = SHOWN_AS.get(zodSchema);
  if (shown !== undefined) {
    const { description } = jsonSchema;
    for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
    Object.assign(jsonSchema, shown, description === undefined ? {} : { description });
  }
  // Unknown members are ignored, and members may be added to answers: no object is closed.
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  // A record of texts needs no schema of its names, and a whole number no bound where JSON loses precision.
  delete jsonSchema.propertyNames;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

function withComponentRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withComponentRefs);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isRef = name === "$ref" && typeof member === "string";
      return [name, isRef ? member.replace("#/$defs/", "#/components/schemas/") : withComponentRefs(member)];
    }),
  );
}

/** A schema without null: what a query string can hold. */
export function withoutNull({ anyOf, type, ...rest }: JsonSchema): JsonSchema {
  if (Array.isArray(type)) return { ...rest, type: type.find((name) => name !== "null") };
  if (!Array.isArray(anyOf)) return type === undefined ? rest : { ...rest, type };
  const kept = anyOf.filter((part: JsonSchema) => part.type !== "null");
  return kept.length === 1 ? { ...rest, ...kept[0] } : { ...rest, anyOf: kept };
}
