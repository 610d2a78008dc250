// Schemas of the wire as JSON Schema (2020-12, the dialect of OpenAPI 3.1). Records with an id become components
// that others refer to.

import { z } from "zod";
import { SHOWN_AS } from "../contract/fields.ts";

export type JsonSchema = Record<string, unknown>;

/** Turns schemas into JSON Schema and gathers the records that they refer to. */
export class SchemaWriter {
  readonly components: Record<string, JsonSchema> = {};

  /** A schema as a caller sees it: what may be sent, or what is answered. */
  write(schema: z.ZodType): JsonSchema {
    const { $defs, ...written } = convert(schema);
    for (const [name, record] of Object.entries($defs)) this.components[name] = withRefs(record, refToRecord);
    return withRefs(written, refToRecord);
  }

  /**
   * Makes an object with members a record of this name, and answers the reference to it: generators of clients name
   * their classes by it. Any other schema is answered as it is.
   */
  named(name: string, schema: JsonSchema): JsonSchema {
    if (Object.keys((schema.properties ?? {}) as JsonSchema).length === 0) return schema;
    if (this.components[name] !== undefined) throw new Error(`Two records are named ${name}`);
    this.components[name] = schema;
    return refToRecord(name);
  }
}

/** A name of ours as records are named: "reserve" is Reserve, "user.merged" is UserMerged. */
export function recordName(name: string): string {
  return name.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function refToRecord(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A schema that stands alone: the records that it refers to are written out in it. */
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
  // Unknown members are ignored, and members may be added to answers: no object is closed.
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  // A time has its format. The pattern beside it says the same, and generators of clients stumble over it.
  if (jsonSchema.format === "date-time" || jsonSchema.format === "date") delete jsonSchema.pattern;
  // A record of texts needs no schema of its names, and a whole number no bound where JSON loses precision.
  delete jsonSchema.propertyNames;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

/** A schema with each reference to a record in place of which something else is to stand. */
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

/** A schema without null: what a query string can hold. */
export function withoutNull({ anyOf, type, ...rest }: JsonSchema): JsonSchema {
  if (Array.isArray(type)) return { ...rest, type: type.find((name) => name !== "null") };
  if (!Array.isArray(anyOf)) return type === undefined ? rest : { ...rest, type };
  const kept = anyOf.filter((part: JsonSchema) => part.type !== "null");
  return kept.length === 1 ? { ...rest, ...kept[0] } : { ...rest, anyOf: kept };
}
