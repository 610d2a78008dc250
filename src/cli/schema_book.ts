// Finds schemas in an OpenAPI document by their places, for the writers of types. What a place is, and how a schema gets
// its name, is the same in each language.

/** A name, its place in the document, and its comment where the document has none. */
export type Places = Readonly<Record<string, readonly [place: string, comment?: string]>>;

/** A schema, or another object of the document. */
export type Schema = Readonly<Record<string, unknown>>;

/** The members of a schema by which its type is written. */
export interface SchemaForm {
  readonly anyOf?: Schema[];
  readonly oneOf?: Schema[];
  readonly const?: unknown;
  readonly enum?: unknown[];
  readonly type?: string | string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** The schemas of a document, with names for those at known places. */
export class SchemaBook {
  readonly places: Places;
  readonly #document: Schema;
  readonly #records: Readonly<Record<string, Schema>>;
  /** Names by the JSON of their schema. */
  readonly #names = new Map<string, string>();

  constructor(document: Schema, places: Places) {
    this.#document = document;
    this.places = places;
    this.#records = (document.components as { schemas: Record<string, Schema> }).schemas;
    for (const [declaration, [place]] of Object.entries(places)) {
      this.#names.set(keyOf(this.find(place)), declaration.split(" ")[0]!);
    }
  }

  /** The name of a resolved schema; undefined for one without. */
  nameOf(schema: Schema): string | undefined {
    return this.#names.get(keyOf(schema));
  }

  /** Each type of message with the schema of its data. */
  messages(): [type: string, data: Schema][] {
    return Object.keys(this.#document.webhooks as Schema).map((type) => {
      const record = type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [type, this.find(`${record}Message.data`)];
    });
  }

  /** The schema at a place, without null. */
  find(place: string): Schema {
    const [root = "", ...steps] = place.split(/\.|(?=\[\])/);
    let schema = root.endsWith("()") ? this.#queryOf(root.slice(0, -2)) : this.#records[root];
    for (const step of steps) {
      const { properties, items } = this.resolved(schema ?? {}) as {
        properties?: Record<string, Schema>;
        items?: Schema;
      };
      schema = step === "[]" ? items : properties?.[step];
    }
    if (schema === undefined) throw new Error(`${place} is not in the document`);
    return this.resolved(schema);
  }

  /** The query of an operation as the schema of an object. */
  #queryOf(operation: string): Schema {
    const operations = Object.values(this.#document.paths as Record<string, Record<string, Schema>>)
      .flatMap((path) => Object.values(path));
    const { parameters } = operations.find(({ operationId }) => operationId === operation) as {
      parameters: { name: string; in?: string; required: boolean; description?: string; schema: Schema }[];
    };
    const own = parameters.filter((parameter) => parameter.in === "query");
    return {
      properties: Object.fromEntries(
        own.map(({ name, description, schema }) => [name, { ...schema, description }]),
      ),
      required: own.filter(({ required }) => required).map(({ name }) => name),
    };
  }

  /** A schema without null, and in place of a reference its record. */
  resolved(schema: Schema): Schema {
    const { schema: known } = withoutNull(schema);
    return typeof known.$ref === "string" ? this.#records[known.$ref.split("/").at(-1)!]! : known;
  }
}

/** A schema's part beside null. */
export function withoutNull(schema: Schema): { schema: Schema; isNullable: boolean } {
  const { anyOf, type, ...rest } = schema as { anyOf?: Schema[]; type?: string | string[] };
  if (Array.isArray(type) && type.includes("null")) {
    const kept = type.filter((name) => name !== "null");
    return { schema: { ...rest, type: kept.length === 1 ? kept[0] : kept }, isNullable: true };
  }
  const kept = anyOf?.filter((part) => part.type !== "null");
  if (kept === undefined || kept.length === anyOf?.length) return { schema, isNullable: false };
  return { schema: kept.length === 1 ? kept[0]! : { ...rest, anyOf: kept }, isNullable: true };
}

/** What schemas of one type share: all but words and bounds. An open object has no name of its own. */
function keyOf(schema: Schema): string {
  if (schema.additionalProperties === true) return "";
  return JSON.stringify(schema, (name, value) => KEPT_OUT.has(name) ? undefined : value);
}
const KEPT_OUT = new Set(["description", "default", "examples", "minimum", "maximum", "exclusiveMinimum"]);

/** Parts joined by spaces, in lines of at most this length. */
export function wrapped(parts: readonly string[], lineBreak: string, length: number): string {
  const lines = [""];
  for (const part of parts) {
    if (lines.at(-1) !== "" && `${lines.at(-1)} ${part}`.length > length) lines.push(part);
    else lines[lines.length - 1] += ` ${part}`;
  }
  return lines.join(lineBreak);
}
