// Match rules: which events a limit group or a credit balance covers. A pattern is a name, a prefix with one final
// "*", or "*". Names are compared exactly, with case. A rule may also list metadata: the event's members must then be
// strings, numbers or booleans that are equal in their JavaScript string form. Other values never match.

/** A free-form JSON object that an app passes with an event: rows keep its text, rules read its members. */
export interface Metadata {
  readonly text: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** The metadata of a row, which keeps it as text; the text is parsed only when a rule asks for a member. */
export function metadataOf(text: string | null): Metadata | null {
  if (text === null) return null;
  let members: Metadata["members"] | null = null;
  return {
    text,
    get members() {
      return members ??= JSON.parse(text) as Metadata["members"];
    },
  };
}

/** A rule: an event pattern and metadata that must be equal. */
export interface MatchRule {
  readonly event: string;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** Whether any of the rules covers an event with this metadata. */
export function matchesAny(rules: readonly MatchRule[], event: string, metadata: Metadata | null): boolean {
  for (const rule of rules) {
    if (patternCovers(rule.event, event) && metadataMatches(rule.metadata, metadata)) return true;
  }
  return false;
}

/** Whether two lists have the same rules in the same order. The order of metadata does not matter. */
export function sameRules(some: readonly MatchRule[], others: readonly MatchRule[]): boolean {
  return some === others || some.length === others.length && some.every((rule, place) => {
        const other = others[place] as MatchRule;
        const [mine, theirs] = [rule.metadata ?? {}, other.metadata ?? {}];
        const names = Object.keys(mine);
        return rule.event === other.event && names.length === Object.keys(theirs).length &&
          names.every((name) => mine[name] === theirs[name]);
      });
}

/**
 * Whether a pattern covers a concrete name, or every name that another pattern covers. Metadata do not matter here.
 *
 * @example
 * ```ts
 * import { patternCovers } from "./match.ts";
 * import assert from "node:assert/strict";
 *
 * assert.ok(patternCovers("image.*", "image.render"));
 * assert.ok(patternCovers("image.*", "image.render.*"));
 * assert.ok(!patternCovers("image.render", "image.*"));
 * ```
 */
export function patternCovers(pattern: string, other: string): boolean {
  if (!pattern.endsWith("*")) return pattern === other;
  const prefix = pattern.slice(0, -1);
  return other.endsWith("*") ? other.slice(0, -1).startsWith(prefix) : other.startsWith(prefix);
}

/** Rules as one text that does not depend on their order. */
export function ruleText(rules: readonly MatchRule[]): string {
  const texts = rules.map((rule) => {
    const metadata = Object.entries(rule.metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([rule.event, metadata]);
  });
  return [...new Set(texts)].sort().join("\n");
}

/** A key of metadata in which a call differs from what a rule requires. */
export interface Difference {
  readonly wanted: string;
  /** null where the call has no such key, or a value of a kind that never matches. */
  readonly given: string | null;
}

/**
 * Returns the keys in which an event's metadata differ from the nearest rule: of the rules that name the event, the first
 * with the fewest differences. Null where no rule names the event; empty where a rule covers it.
 */
export function nearestDifferences(
  rules: readonly MatchRule[],
  event: string,
  metadata: Metadata | null,
): ReadonlyMap<string, Difference> | null {
  let nearest: ReadonlyMap<string, Difference> | null = null;
  for (const rule of rules) {
    if (!patternCovers(rule.event, event)) continue;
    const differences = differencesOf(rule.metadata ?? {}, metadata);
    if (nearest === null || differences.size < nearest.size) nearest = differences;
  }
  return nearest;
}

function differencesOf(
  wanted: NonNullable<MatchRule["metadata"]>,
  metadata: Metadata | null,
): ReadonlyMap<string, Difference> {
  const differences = new Map<string, Difference>();
  for (const [name, text] of Object.entries(wanted)) {
    const given = givenText(metadata, name);
    if (given !== text) differences.set(name, { wanted: text, given });
  }
  return differences;
}

function metadataMatches(wanted: MatchRule["metadata"], metadata: Metadata | null): boolean {
  if (wanted === undefined) return true;
  for (const name in wanted) {
    if (givenText(metadata, name) !== wanted[name]) return false;
  }
  return true;
}

/** The string form of a call's value for a key; null for no value, or a value that never matches. */
function givenText(metadata: Metadata | null, name: string): string | null {
  if (metadata === null || !Object.hasOwn(metadata.members, name)) return null;
  return scalarText(metadata.members[name]);
}

/** The JavaScript string form of a string, number or boolean; null for values that never match. */
function scalarText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}
