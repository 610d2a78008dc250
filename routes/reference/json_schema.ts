// Zod schemas as JSON Schema (2020-12, the dialect of OpenAPI 3.1). Records with an id become components.

import { z } from "zod";
import { SHOWN_AS } from "../contract/fields.ts";

export type JsonSchema = Record<string, unknown>;

/** Writes schemas as JSON Schema, and collects the records that they refer to. */
export class SchemaWriter {
  readonly components: Record<string, JsonSchema> = {};

  /** Writes the schema of an input or an answer, as a caller sees it. */
  write(schema: z.ZodType): JsonSchema {
    const { $defs, ...written } = convert(schema);
    for (const [name, record] of Object.entries($defs)) this.components[name] = withRefs(record, refToRecord);
    return withRefs(written, refToRecord);
  }

  /**
   * Makes an object with members a component of this name, and returns a reference to it: generated clients name their
   * classes by it. Any other schema is returned unchanged.
   */
  named(name: string, schema: JsonSchema): JsonSchema {
    if (Object.keys((schema.properties ?? {}) as JsonSchema).length === 0) return schema;
    if (this.components[name] !== undefined) throw new Error(`Two records are named ${name}`);
    this.components[name] = schema;
    return refToRecord(name);
  }
}

/** Converts a name to that of a record: "reserve" to Reserve, "user.merged" to UserMerged. */
export function recordName(name: string): string {
  return name.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function refToRecord(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Writes a schema without references: its records are inlined. */
export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $defs, ...written } = convert(schema);
  const inlined = (name: string): JsonSchema => withRefs($defs[name] as JsonSchema, inlined);
  return withRefs(written, inlined);
}

function convert(schema: z.ZodType): JsonSchema & { readonly $defs: Readonly<Record<string, JsonSchema>> } {
  const { $defs = {}, $schema: _, ...written } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => show(zodSchema, jsonSchema),
  });
  return { ...written, $defs: $defs as Record<string, JsonSchema> };
}

function show(zodSchema: z.core.$ZodType, jsonSchema: JsonSchema): void {
  const shown = SHOWN_AS.get(zodSchema);
  if (shown !== undefined) {
    const { description } = jsonSchema;
    for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
    Object.assign(jsonSchema, shown, description === undefined ? {} : { description });
    return;
  }
  // Unknown members of inputs are ignored, and members may be added to answers.
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  // The format of a time suffices. Some client generators fail on the pattern.
  if (jsonSchema.format === "date-time" || jsonSchema.format === "date") delete jsonSchema.pattern;
  // The names of a record need no schema, and an integer needs no bound at the precision of JSON.
  delete jsonSchema.propertyNames;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

/** Replaces each reference to a record. */
function withRefs({ id: _, ...schema }: JsonSchema, refTo: (name: string) => JsonSchema): JsonSchema {
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...members } = value as JsonSchema;
    const copied = Object.fromEntries(
      Object.entries(members).map(([name, member]) => [name, replaced(member)]),
    );
    if (typeof $ref !== "string") return copied;
    return { ...refTo($ref.slice("#/$defs/".length)), ...copied };
  };
  return replaced(schema) as JsonSchema;
}

/** Removes null, which a query string cannot contain. */
export function withoutNull({ anyOf, type, ...rest }: JsonSchema): JsonSchema {
  if (Array.isArray(type)) return { ...rest, type: type.find((name) => name !== "null") };
  if (!Array.isArray(anyOf)) return type === undefined ? rest : { ...rest, type };
  const kept = anyOf.filter((part: JsonSchema) => part.type !== "null");
  return kept.length === 1 ? { ...rest, ...kept[0] } : { ...rest, anyOf: kept };
}
