// The catalog format as a JSON Schema for editors and as tables for people, both made from the zod schemas, so that
// neither can say anything else than what is checked.

import { z } from "zod";
import { looseOf } from "./loose.ts";
import { catalogSchema, envelopeMembers } from "./schema.ts";

/** The members of a JSON Schema that are read here. */
interface Part {
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Part>>;
  readonly required?: readonly string[];
  readonly items?: Part;
  readonly additionalProperties?: Part | boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly Part[];
  readonly oneOf?: readonly Part[];
  readonly allOf?: readonly Part[];
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, Part>>;
}

/** The JSON Schema of a catalog file, in the draft that editors know best. */
export function catalogJsonSchema(): Part {
  const file = z.strictObject({ ...envelopeMembers, ...catalogSchema.shape })
    .meta({
      title: "Holdfast catalog",
      description: "What an app's users are entitled to, and what it costs.",
    });
  return z.toJSONSchema(file, { io: "input", unrepresentable: "any", target: "draft-7" }) as Part;
}

/** Where the page's tables begin and end; the text around them is written by hand. */
const BEGIN = "<!-- Made by `deno task catalog:schema` from schema.ts: do not edit below. -->";

/** A page with its tables made anew. */
export function withTables(page: string): string {
  const [prose = ""] = page.split(BEGIN);
  return `${prose}${BEGIN}\n\n${tables()}`;
}

type Definitions = Readonly<Record<string, Part>>;

function tables(): string {
  const { definitions = {}, ...file } = catalogJsonSchema();
  const parts = [
    "Settings",
    "RateLimit",
    "Gateway",
    "UpstreamRule",
    "Model",
    "PriceTier",
    "Rate",
    "Plan",
    "Period",
    "GroupPeriod",
    "Trial",
    "IncludedPack",
    "Rollover",
  ]
    .concat([
      "LimitGroup",
      "MatchRule",
      "Headroom",
      "Overage",
      "MemberLimit",
      "PlanPrice",
      "Pack",
      "PackPrice",
      "PackItem",
      "ComposeType",
    ])
    .map((name) => definitions[`Catalog${name}`] as Part);
  const sections = [{ ...file, title: "The document" }, ...parts].map((part) => {
    const { title = "", description = "" } = part;
    const kinds = (part.oneOf ?? [part]).map((kind) => tableOf(kind, definitions));
    return `## ${title}\n\n${description}\n\n${kinds.join("\n")}`;
  });
  return sections.join("\n");
}

const TITLES = ["member", "value", "meaning", "default", "example"];

function tableOf({ properties = {}, required = [] }: Part, definitions: Definitions): string {
  const rows = Object.entries(properties).map(([name, part]) => {
    const record = recordOf(part, definitions);
    const { description = record?.description ?? "" } = part;
    const otherwise = part.default === undefined ? "none" : code(JSON.stringify(part.default));
    const value = required.includes(name) ? "required" : otherwise;
    return [code(name), valueOf(part), description, value, exampleOf(part, record)];
  });
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(" | ")} |`;
  return [line(TITLES), line(TITLES.map(() => "---")), ...rows.map(line)].join("\n") + "\n";
}

/** The record that a member is, or that its elements are. */
function recordOf({ $ref, allOf, anyOf, items }: Part, definitions: Definitions): Part | undefined {
  const ref = $ref ?? [...allOf ?? [], ...anyOf ?? []].find((part) => part.$ref !== undefined)?.$ref ??
    items?.$ref;
  return ref === undefined ? undefined : definitions[ref.replace("#/definitions/", "")];
}

/** An example of a member, or where the members of its records have theirs. */
function exampleOf({ examples, const: only }: Part, record: Part | undefined): string {
  const [example = only] = examples ?? record?.examples ?? [];
  if (example !== undefined) return code(JSON.stringify(example));
  return record?.title === undefined
    ? ""
    : `see [${record.title}](#${record.title.toLowerCase().replaceAll(" ", "-")})`;
}

function code(text: string): string {
  return `\`${text}\``;
}

function escaped(cell: string): string {
  return cell.replaceAll("|", "\\|");
}

/** The allowed values, in a few words. */
function valueOf(part: Part): string {
  const { $ref, allOf, anyOf, enum: values, const: only, items, type } = part;
  if ($ref !== undefined) return linkTo($ref);
  if (allOf !== undefined) return allOf.map(valueOf).join(", ");
  if (anyOf !== undefined) return anyOf.map(valueOf).join(" or ");
  if (only !== undefined) return code(JSON.stringify(only));
  if (values !== undefined) return values.map((value) => code(JSON.stringify(value))).join(", ");
  const { $ref: named } = looseOf(part.additionalProperties);
  if (typeof named === "string") return `object of ${linkTo(named)} by id`;
  if (type === "array") return `list of ${items === undefined ? "values" : valueOf(items)}`;
  return `${type ?? "any value"}${rangeOf(part)}`;
}

function linkTo(ref: string): string {
  const words = ref.replace("#/definitions/Catalog", "").replaceAll(/(?<!^)[A-Z]/g, " $&").toLowerCase();
  return `[${words}](#${words.replaceAll(" ", "-")})`;
}

/** The bounds of a number or the length of a text. */
function rangeOf(part: Part): string {
  const { minimum, exclusiveMinimum, maximum, minLength, maxLength } = part as Record<string, unknown>;
  if (minLength !== undefined && maxLength !== undefined) return `, ${minLength} to ${maxLength} characters`;
  const low = exclusiveMinimum === undefined ? minimum : `more than ${exclusiveMinimum}`;
  const isUnbounded = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER;
  if (low === undefined && isUnbounded) return "";
  if (isUnbounded) return exclusiveMinimum === undefined ? `, ${low} or more` : `, ${low}`;
  return exclusiveMinimum === undefined ? `, ${low} to ${maximum}` : `, ${low}, up to ${maximum}`;
}
