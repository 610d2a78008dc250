// Writes parts of an OpenAPI document as types of Python: a `TypedDict` for each object. Python has no nested form of
// these, so an object without a name is called by its parent and its member.

import {
  type Places,
  type Schema,
  SchemaBook,
  type SchemaForm,
  withoutNull,
  wrapped,
} from "./schema_book.ts";

const HEAD =
  `"""The inputs and answers of the API as types. Written by \`deno task client:types\` from the API's OpenAPI document.

Change the document's schemas, not this file. Times in answers are ISO 8601 text in UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Moment = Union[str, datetime]
"""A time in an input: ISO 8601 text with its offset from UTC, or a datetime with a time zone."""
`;

const LINE_WIDTH = 100;
const KEYWORDS: ReadonlySet<string> = new Set([
  "from",
  "in",
  "is",
  "not",
  "or",
  "and",
  "class",
  "def",
  "global",
]);

/** The types of all places, and the data of the webhooks' messages, as one module of Python. */
export function writePythonTypes(document: Schema, places: Places): string {
  const writer = new PythonWriter(document, places);
  const declarations = Object.keys(places).map((name) => writer.declare(name));
  return [HEAD, ...declarations, writer.declareMessages()].join("\n\n");
}

class PythonWriter {
  readonly #book: SchemaBook;
  /** Declarations of objects without a name, before the one that is being written. */
  #nested: string[] = [];
  #isInput = false;

  constructor(document: Schema, places: Places) {
    this.#book = new SchemaBook(document, places);
  }

  /** @param declaration a name, or a name with the type that it extends */
  declare(declaration: string): string {
    const [place, comment] = this.#book.places[declaration]!;
    const [name = "", parent] = declaration.split(" extends ");
    const schema = this.#book.find(place);
    this.#nested = [];
    this.#isInput = /\(\)|Request\b/.test(place);
    const words = comment ?? schema.description as string | undefined;
    if (!("properties" in schema)) {
      const text = `${name} = ${broken(this.#bodyOf(schema, name))}\n${commentOf(words, "")}`;
      return this.#withNested(text);
    }
    const inherited = parent === undefined
      ? {}
      : this.#book.find(this.#book.places[parent]![0]).properties as Schema;
    const own = Object.entries(schema.properties as Schema).filter(([member]) => !(member in inherited));
    const text = this.#objectOf(
      { ...schema, properties: Object.fromEntries(own) },
      name,
      parent ?? "TypedDict",
      words,
    );
    return this.#withNested(text);
  }

  /** The data of each type of message, by the type's name in a mapping for checkers. */
  declareMessages(): string {
    this.#nested = [];
    this.#isInput = false;
    const members = this.#book.messages().map(([type, schema]) =>
      `    ${JSON.stringify(type)}: ${quoted(this.#typeOf(schema, nameIn("", type)))},\n`
    );
    return this.#withNested(
      `WebhookData = TypedDict("WebhookData", {\n${members.join("")}})\n` +
        `"""The data of each type of webhook message."""\n`,
    );
  }

  #withNested(text: string): string {
    return [...this.#nested, text].join("\n\n");
  }

  #typeOf(schema: Schema, place: string): string {
    const { schema: known, isNullable } = withoutNull(schema);
    const resolved = this.#book.resolved(known);
    const type = this.#book.nameOf(resolved) ?? this.#bodyOf(resolved, place);
    return isNullable ? unionOf([type, "None"]) : type;
  }

  /** @param place the name of an object without one */
  #bodyOf(schema: Schema, place: string): string {
    const { anyOf, oneOf = anyOf, const: value, enum: values, type, items, additionalProperties } =
      schema as SchemaForm;
    if (oneOf?.[0]?.format === "date-time") return "Moment";
    if (oneOf !== undefined) {
      return unionOf(oneOf.map((form, at) => this.#typeOf(form, `${place}${at + 1}`)));
    }
    if (value !== undefined) return literalOf([value]);
    if (values !== undefined) return values.join() === "true,false" ? "bool" : literalOf(values);
    if ("properties" in schema) {
      const declared = this.#objectOf(schema, place, "TypedDict", schema.description as string | undefined);
      if (!this.#nested.includes(declared)) this.#nested.push(declared);
      return place;
    }
    if (items !== undefined) {
      return `${this.#isInput ? "Sequence" : "List"}[${this.#typeOf(items, place)}]`;
    }
    if (type === "object") {
      const member = typeof additionalProperties === "object" ? additionalProperties : {};
      return `${this.#isInput ? "Mapping" : "Dict"}[str, ${this.#typeOf(member, place)}]`;
    }
    if (type === undefined) return "Any";
    return unionOf([type].flat().map((one) => SCALARS[one] ?? "Any"));
  }

  #objectOf(
    { properties, required = [] }: Schema,
    name: string,
    parent: string,
    words: string | undefined,
  ): string {
    const members = Object.entries(properties as Record<string, Schema>).map(([member, schema]) => {
      const { schema: known } = withoutNull(schema);
      const description = [schema.description, known.description]
        .find((text) => text !== undefined && !/ISO 8601/.test(String(text))) as string | undefined;
      const type = this.#typeOf(schema, nameIn(name, member));
      const isOptional = !(required as string[]).includes(member);
      return { member, type: isOptional ? `NotRequired[${type}]` : type, description };
    });
    if (members.some(({ member }) => KEYWORDS.has(member))) {
      const fields = members.map(({ member, type }) => `    ${JSON.stringify(member)}: ${quoted(type)},\n`);
      return `${name} = TypedDict("${name}", {\n${fields.join("")}})\n${commentOf(words, "")}`;
    }
    const fields = members.map(({ member, type, description }) =>
      `    ${member}: ${broken(type)}\n${commentOf(description, "    ")}`
    );
    return `class ${name}(${parent}):\n${commentOf(words ?? `Members of ${name}.`, "    ")}${
      fields.length === 0 ? "" : `\n${fields.join("")}`
    }`;
  }
}

const SCALARS: Readonly<Record<string, string>> = {
  string: "str",
  number: "float",
  integer: "int",
  boolean: "bool",
};

function unionOf(types: readonly string[]): string {
  const parts = types.flatMap((type) => /^Union\[(.*)\]$/s.exec(type)?.[1]?.split(", ") ?? [type]);
  const known = [...new Set(types.some((type) => type.includes("[")) ? types : parts)];
  return known.length === 1 ? known[0]! : `Union[${known.join(", ")}]`;
}

function literalOf(values: readonly unknown[]): string {
  const words: Readonly<Record<string, string>> = { true: "True", false: "False" };
  return `Literal[${values.map((one) => words[String(one)] ?? JSON.stringify(one)).join(", ")}]`;
}

/** A type as text, for places where Python evaluates it. */
function quoted(type: string): string {
  return `'${type}'`;
}

function nameIn(parent: string, member: string): string {
  return parent + member.replace(/(?:^|[._])?([a-zA-Z])/, (_, letter: string) => letter.toUpperCase())
    .replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A long list of alternatives goes on in the next lines. */
function broken(type: string): string {
  if (type.length < LINE_WIDTH - 24 || !/^(NotRequired\[)?(Literal|Union)\[/.test(type)) return type;
  const open = type.lastIndexOf("[", type.indexOf('"') === -1 ? undefined : type.indexOf('"')) + 1;
  const close = type.length - (/\]+$/.exec(type)?.[0].length ?? 0);
  const lines = wrapped(type.slice(open, close).split(/(?<=,) /), "\n        ", LINE_WIDTH - 10).trim();
  return `${type.slice(0, open)}\n        ${lines}\n    ${type.slice(close)}`;
}

/** Words as a docstring, in lines that fit. */
function commentOf(words: string | undefined, indent: string): string {
  if (words === undefined) return "";
  const text = (/[.!?]$/.test(words) ? words : `${words}.`).replaceAll("\\", "\\\\");
  const lines = wrapped(text.split(" "), `\n${indent}`, LINE_WIDTH - indent.length - 6).trim();
  const end = lines.includes("\n") ? `\n${indent}"""\n` : `${lines.endsWith('"') ? " " : ""}"""\n`;
  return `${indent}"""${lines}${end}`;
}
