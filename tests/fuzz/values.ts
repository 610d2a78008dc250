// Values made from schemas: valid ones, which mostly name things that exist, and wild ones, which follow no schema.
// It walks the definitions of the schemas that the routes check with, so a new member is fuzzed from its first day.

import type { z } from "zod";
import type { Random } from "../model/random.ts";

/** Texts by member name that mean something in the scene: ids that exist, events that match. */
type Pools = ReadonlyMap<string, readonly string[]>;

/** What of a schema's definition is walked. */
interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly entries?: Readonly<Record<string, unknown>>;
  readonly values?: readonly unknown[];
  readonly valueType?: z.ZodType;
  readonly format?: string;
  readonly checks?: readonly { readonly _zod: { readonly def: Readonly<Record<string, unknown>> } }[];
}

/** Members with values of features, which the scene has as booleans. */
const FEATURES = new Set(["features", "featureDefaults", "customFeatures"]);
const OMITTED = 0.45;
const NULLED = 0.1;
const NUMBERS = [0, 1, 2, 3, 5, 10, 0.1, 0.000001, 1.5, 99.999999, 60, 600, 100_000];

/** Makes values by chance. */
export class Values {
  readonly #random: Random;
  readonly #pools: Pools;

  constructor(random: Random, pools: Pools) {
    this.#random = random;
    this.#pools = pools;
  }

  /** A value that a schema takes, by its definition; undefined for an omitted member. */
  valid(schema: z.ZodType, name = ""): unknown {
    const definition = schema._zod.def as unknown as Definition;
    const random = this.#random;
    switch (definition.type) {
      case "object":
        return this.#members(Object.entries(definition.shape ?? {}));
      case "optional":
      case "default":
        return random.chance(OMITTED) ? undefined : this.valid(definition.innerType as z.ZodType, name);
      case "nullable":
        return random.chance(NULLED) ? null : this.valid(definition.innerType as z.ZodType, name);
      case "array":
        return this.#list(definition.element as z.ZodType, name);
      case "union":
        return this.valid(random.pick(definition.options ?? []), name);
      case "pipe": {
        const { type } = (definition.in as z.ZodType)._zod.def as unknown as Definition;
        return this.valid((type === "unknown" ? definition.out : definition.in) as z.ZodType, name);
      }
      case "record":
        return {
          [this.named(FEATURES.has(name) ? "key" : "groupId") ?? "a"]: this.valid(
            definition.valueType as z.ZodType,
            name,
          ),
        };
      case "enum":
        return random.pick(Object.values(definition.entries ?? {}));
      case "literal":
        return random.pick(definition.values ?? []);
      case "string":
        return this.#text(definition, name);
      case "number":
        return this.#number(definition);
      case "boolean":
        return random.chance(0.5);
      case "custom":
        return FEATURES.has(name) ? random.chance(0.5) : this.object();
      case "unknown":
        return this.#unknown(name);
      default:
        throw new Error(`No values are known for a schema of type ${definition.type}`);
    }
  }

  /** A text of the scene for a member, or null where the scene has none of that name. */
  named(name: string): string | null {
    const pool = this.#pools.get(name);
    return pool === undefined || pool.length === 0 ? null : this.#random.pick(pool);
  }

  /** A plain JSON object as apps send them. */
  object(): Record<string, unknown> {
    const random = this.#random;
    const names = ["model", "a", "name", "language", "__proto__", "constructor", "toString", "size"];
    const entries = names.filter(() => random.chance(0.3)).map((name) => {
      const value = random.pick<unknown>(["gpt", "veo", "x", 1, 0.5, true, null, "flux-pro", -0]);
      return [name, value] as const;
    });
    return Object.fromEntries(entries);
  }

  /** Anything. */
  wild(): unknown {
    return this.#random.pick(WILD)();
  }

  /** Changes one place of a value: a member left out, doubled in kind, made wild, or moved to another member. */
  mutated(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return this.wild();
    const names = Object.keys(value);
    if (names.length === 0 || this.#random.chance(0.1)) return { ...value, [this.#wildName()]: this.wild() };
    const name = this.#random.pick(names);
    const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    const member = copy[name];
    const isDeep = typeof member === "object" && member !== null;
    switch (this.#random.weighted({ deeper: isDeep ? 20 : 0, wild: 7, left: 2, moved: 2 })) {
      case "deeper":
        copy[name] = this.mutated(member);
        break;
      case "wild":
        copy[name] = this.wild();
        break;
      case "left":
        delete copy[name];
        break;
      case "moved":
        copy[name] = copy[this.#random.pick(names)];
    }
    return copy;
  }

  #wildName(): string {
    return this.#random.pick(["__proto__", "constructor", "toString", "options", "", "hasOwnProperty", "ok"]);
  }

  #members(entries: readonly (readonly [string, z.ZodType])[]): Record<string, unknown> {
    const members: Record<string, unknown> = {};
    for (const [name, schema] of entries) {
      const value = this.valid(schema, name);
      if (value !== undefined) members[name] = value;
    }
    return members;
  }

  #list(element: z.ZodType, name: string): unknown[] {
    return Array.from({ length: this.#random.whole(1, 4) }, () => this.valid(element, name));
  }

  #text({ format, checks = [] }: Definition, name: string): string {
    const random = this.#random;
    if (format === "datetime") return new Date(Date.UTC(2026, 0, random.whole(1, 40))).toISOString();
    if (format === "date") return `2026-01-${random.whole(10, 31)}`;
    const isWhole = checks.some(({ _zod: { def } }) => String(def.pattern).includes("\\d"));
    if (isWhole) return String(random.pick([0, 1, 2, 20, 100, 500, 10_000]));
    return this.named(name) ?? random.pick(["x", "text", "a-b", "😀", "é".repeat(200)]);
  }

  #number({ checks = [] }: Definition): number {
    const limits = checks.map(({ _zod: { def } }) => def.value).filter((value) => typeof value === "number");
    return this.#random.pick(this.#random.chance(0.1) && limits.length > 0 ? limits : NUMBERS);
  }

  #unknown(name: string): unknown {
    if (name !== "pairs") return this.#random.pick(NUMBERS);
    return { from: this.named("from"), to: this.named("to") };
  }
}

/** What hostile or careless callers send; by functions, since some are large. */
const WILD: readonly (() => unknown)[] = [
  () => null,
  () => true,
  () => "",
  () => " ",
  () => "a\u0000b",
  () => "\ud800",
  () => "\u202egnp.exe",
  () => "__proto__",
  () => "constructor",
  () => "*",
  () => "image.*.x",
  () => "' or 1=1 --",
  () => "${7*7}{{7*7}}",
  () => "../../etc/passwd",
  () => "\r\nX-Injected: 1",
  () => "😀".repeat(201),
  () => "x".repeat(40_000),
  () => 0,
  () => -1,
  () => -0,
  () => 1e308,
  () => 5e-324,
  () => 1e-7,
  () => 2 ** 53 + 2,
  () => 1e12,
  () => 1_000_000_000_001,
  () => 0.1 + 0.2,
  () => "1e3",
  () => "NaN",
  () => "0001-01-01T00:00:00Z",
  () => "9999-12-31T23:59:59.999Z",
  () => "2026-02-30",
  () => "+275760-09-13T00:00:00Z",
  () => [],
  () => [[]],
  () => Array.from({ length: 600 }, () => ({ from: "a", to: "b" })),
  () => ({}),
  () => ({ length: 1e9 }),
  () => JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
  () => ({ toString: 1, valueOf: null, toJSON: "x" }),
  () => nested(200),
];

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}
