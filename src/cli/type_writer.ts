// Writes parts of an OpenAPI document as TypeScript types. Known names are used wherever their schema appears again;
// everything else is written in place.

import {
  type Places,
  type Schema,
  SchemaBook,
  type SchemaForm,
  withoutNull,
  wrapped,
} from "./schema_book.ts";

const HEAD =
  `// The inputs and answers of the API as types. Written by \`deno task client:types\` from the API's OpenAPI document:
// change the document's schemas, not this file. Times in answers are ISO 8601 text in UTC.
// deno-fmt-ignore-file

/** A time in an input: ISO 8601 text with its offset from UTC, or a Date. */
export type Moment = string | Date;
`;

const LINE_WIDTH = 110;

/** The types of all places, and the data of the webhooks' messages, as one module. */
export function writeTypes(
  document: Schema,
  places: Places,
  own: Readonly<Record<string, string>>,
): string {
  const writer = new TypeWriter(document, places, own);
  return [HEAD, ...Object.keys(places).map((name) => writer.declare(name)), writer.declareMessages()].join(
    "\n",
  );
}

class TypeWriter {
  readonly #book: SchemaBook;
  readonly #own: Readonly<Record<string, string>>;
  /** The type that is being written. */
  #current = "";
  #isInput = false;

  constructor(document: Schema, places: Places, own: Readonly<Record<string, string>>) {
    this.#book = new SchemaBook(document, places);
    this.#own = own;
  }

  /** @param declaration a name, or a name with the interface that it extends */
  declare(declaration: string): string {
    const [place, comment] = this.#book.places[declaration]!;
    const [name = "", parent] = declaration.split(" extends ");
    const schema = this.#book.find(place);
    this.#current = name;
    this.#isInput = /\(\)|Request\b/.test(place);
    const words = commentOf(comment ?? schema.description as string, "");
    if (!("properties" in schema)) {
      return `${words}export type ${name} =${broken(this.#bodyOf(schema, ""), "")};\n`;
    }
    const inherited = parent === undefined
      ? {}
      : this.#book.find(this.#book.places[parent]![0]).properties as Schema;
    const own = Object.entries(schema.properties as Schema).filter(([member]) => !(member in inherited));
    const body = this.#objectOf({ ...schema, properties: Object.fromEntries(own) }, "", []);
    return `${words}export interface ${declaration} ${body}\n`;
  }

  /** The data of each type of message. */
  declareMessages(): string {
    this.#isInput = false;
    const members = this.#book.messages().map(([type, schema]) =>
      `  readonly ${JSON.stringify(type)}: ${this.#typeOf(schema, "  ")};\n`
    );
    return `${commentOf("The data of each type of webhook message.", "")}export interface WebhookData {\n${
      members.join("")
    }}\n`;
  }

  /** A schema as a type: by its name where it has one. */
  #typeOf(schema: Schema, indent: string): string {
    const { schema: known, isNullable } = withoutNull(schema);
    const resolved = this.#book.resolved(known);
    const type = this.#book.nameOf(resolved) ?? this.#bodyOf(resolved, indent);
    return isNullable ? `${type} | null` : type;
  }

  #bodyOf(schema: Schema, indent: string): string {
    const { anyOf, oneOf = anyOf, const: value, enum: values, type, items, additionalProperties } =
      schema as SchemaForm;
    if (oneOf?.[0]?.format === "date-time") return "Moment";
    if (oneOf !== undefined) return this.#unionOf(oneOf, indent);
    if (value !== undefined) return JSON.stringify(value);
    if (values !== undefined) {
      const isBoolean = values.join() === "true,false";
      return isBoolean ? "boolean" : values.map((one) => JSON.stringify(one)).join(" | ");
    }
    if ("properties" in schema) return this.#objectOf(schema, indent, []);
    if (items !== undefined) {
      const item = this.#typeOf(items, indent);
      return `readonly ${item.includes(" | ") && !item.endsWith("}") ? `(${item})` : item}[]`;
    }
    if (type === "object") {
      const member = typeof additionalProperties === "object" ? additionalProperties : {};
      return `Readonly<Record<string, ${this.#typeOf(member, indent)}>>`;
    }
    if (type === undefined) return "unknown";
    return [type].flat().map((one) => one === "integer" ? "number" : one).join(" | ");
  }

  /** A union: of types without members, or of objects, each with the members of the others as undefined. */
  #unionOf(forms: readonly Schema[], indent: string): string {
    const isOfObjects = forms.some((form) => "properties" in this.#book.resolved(form));
    return isOfObjects
      ? this.#objectsOf(forms, indent)
      : forms.map((form) => this.#typeOf(form, indent)).join(" | ");
  }

  /** A union of objects: each form has the members of the others as undefined, so that they can be read. */
  #objectsOf(forms: readonly Schema[], indent: string): string {
    const objects = forms.map((form) => this.#book.resolved(form));
    const names = objects.flatMap(({ properties = {} }) => Object.keys(properties as Schema));
    return objects.map((form) => `\n${indent}  | ${this.#objectOf(form, `${indent}  `, names)}`).join("");
  }

  #objectOf({ properties, required = [] }: Schema, indent: string, ofOthers: readonly string[]): string {
    const members = Object.entries(properties as Record<string, Schema>).map(([name, member]) => {
      const isOptional = !(required as string[]).includes(name);
      const { schema: known, isNullable } = withoutNull(member);
      const words = [member.description, known.description]
        .find((text) => text !== undefined && !/ISO 8601/.test(String(text))) as string | undefined;
      // In an optional input null means the same as leaving the member out.
      const means = this.#isInput && isOptional && isNullable ? known : member;
      const type = this.#own[`${this.#current}.${name}`] ?? this.#typeOf(means, `${indent}  `);
      const orLeftOut = this.#isInput && isOptional ? " | undefined" : "";
      const text = broken(type + orLeftOut, `${indent}  `);
      return `${commentOf(words, `${indent}  `)}${indent}  readonly ${name}${
        isOptional ? "?" : ""
      }:${text};\n`;
    });
    const missing = new Set(ofOthers).difference(new Set(Object.keys(properties as Schema)));
    members.push(...[...missing].map((name) => `${indent}  readonly ${name}?: undefined;\n`));
    if (members.length === 0) return "Readonly<Record<never, never>>";
    const inLine = members.map((member) => member.trim()).join(" ").replace(/;$/, "");
    const fits = members.every((member) => member.trim().indexOf("\n") < 0) &&
      inLine.length < LINE_WIDTH - 26;
    return fits ? `{ ${inLine} }` : `{\n${members.join("")}${indent}}`;
  }
}

/** A union that is too long for one line goes on in the next ones. */
function broken(type: string, indent: string): string {
  if (/[{\n]/.test(type)) return type.startsWith("\n") ? type : ` ${type}`;
  return wrapped(type.split(/ (?=\| )/), `\n${indent}  `, LINE_WIDTH - indent.length - 24);
}

/** Words as a doc comment, in lines that fit. */
function commentOf(words: string | undefined, indent: string): string {
  if (words === undefined) return "";
  const text = /[.!?]$/.test(words) ? words : `${words}.`;
  const lines = wrapped(text.split(" "), `\n${indent} * `, LINE_WIDTH - indent.length - 6);
  return lines.includes("\n")
    ? `${indent}/**${lines.replace(/^ /, `\n${indent} * `)}\n${indent} */\n`
    : `${indent}/**${lines} */\n`;
}
