// What model servers and SDKs report of a call, read from the names that each of them uses. A name counts the same in
// snake_case and in camelCase.

import { fromNumber, larger, type Micros, ZERO } from "./decimal.ts";
import type { Input } from "./document.ts";

/** What a model server reported, each token in one part only. */
export interface Report {
  /** Whether it speaks of tokens at all. */
  speaksOfTokens: boolean;
  input: Micros;
  tokens: Micros;
  parts: Record<TokenKind, Micros>;
  seconds: Micros | null;
  calls: Micros | null;
  /** Whether it names another service tier than the standard one. */
  isOtherTier: boolean;
}

/** The kinds of tokens that have a price of their own. */
export type TokenKind = "plain" | "cached" | "write" | "hourWrite" | "text" | "reasoning";

/** The report of a commit or a track, from `usage` or `providerUsage`; null for none. */
export function reportOf(input: Input): Report | null {
  const usage = input["usage"] as Input | undefined;
  if (usage !== undefined) return ownReport(usage);
  const provider = input["providerUsage"] as Input | undefined;
  return provider === undefined ? null : providerReport(provider);
}

function ownReport(usage: Input): Report {
  const said = (name: string) => typeof usage[name] === "number" ? fromNumber(usage[name]) : null;
  const speaksOfTokens = said("inputTokens") !== null || said("outputTokens") !== null;
  const counts = {
    input: said("inputTokens") ?? ZERO,
    output: said("outputTokens") ?? ZERO,
    cached: said("cachedInputTokens") ?? ZERO,
    writes: said("cacheWriteTokens") ?? ZERO,
    hourWrites: said("cacheWrite1hTokens") ?? ZERO,
    reasoning: said("reasoningTokens") ?? ZERO,
  };
  return { ...divided(counts), speaksOfTokens, seconds: said("seconds"), calls: said("calls") };
}

interface Counts {
  input: Micros;
  output: Micros;
  cached: Micros;
  writes: Micros;
  hourWrites: Micros;
  reasoning: Micros;
}

function divided({ input, output, cached, writes, hourWrites, reasoning }: Counts): Report {
  return {
    speaksOfTokens: true,
    input,
    tokens: input + output,
    parts: {
      plain: input - cached - writes,
      cached,
      write: writes - hourWrites,
      hourWrite: hourWrites,
      text: output - reasoning,
      reasoning,
    },
    seconds: null,
    calls: null,
    isOtherTier: false,
  };
}

/** Every number and text of an object by its path, without underscores and in lower case. */
function flat(object: Input, above = ""): Map<string, number | string> {
  const found = new Map<string, number | string>();
  for (const [name, value] of Object.entries(object)) {
    const path = above + name.replaceAll("_", "").toLowerCase();
    if (typeof value === "number" || typeof value === "string") found.set(path, value);
    else if (typeof value === "object" && value !== null) {
      for (const [inner, each] of flat(value as Input, `${path}.`)) found.set(inner, each);
    }
  }
  return found;
}

/** Families of reports: the names of their members, in the order in which one is looked for. */
type Family = Record<keyof Counts | "alsoInput", string[]> & {
  cacheIsBeside?: true;
  thoughtsAreBeside?: true;
};

const CHAT: Family = {
  input: ["prompttokens"],
  alsoInput: [],
  output: ["completiontokens"],
  cached: [
    "prompttokensdetails.cachedtokens",
    "promptcachehittokens",
    "cachereadinputtokens",
    "cachedtokens",
  ],
  writes: ["prompttokensdetails.cachewritetokens", "cachecreationinputtokens"],
  hourWrites: [],
  reasoning: ["completiontokensdetails.reasoningtokens", "reasoningtokens"],
};

const BESIDE: Family = {
  input: ["inputtokens"],
  alsoInput: [],
  output: ["outputtokens"],
  cached: ["cachereadinputtokens"],
  writes: ["cachecreationinputtokens", "cachewriteinputtokens"],
  hourWrites: ["cachecreation.ephemeral1hinputtokens"],
  reasoning: ["outputtokensdetails.reasoningtokens"],
  cacheIsBeside: true,
};

const PLAIN: Family = {
  input: ["inputtokens.total", "inputtokens"],
  alsoInput: [],
  output: ["outputtokens.total", "outputtokens"],
  cached: [
    "inputtokens.cacheread",
    "inputtokensdetails.cachedtokens",
    "inputtokendetails.cachedtokens",
    "inputtokendetails.cachereadtokens",
    "cachedinputtokens",
  ],
  writes: [
    "inputtokens.cachewrite",
    "inputtokensdetails.cachewritetokens",
    "inputtokendetails.cachewritetokens",
    "cachewritetokens",
  ],
  hourWrites: ["cachewrite1htokens"],
  reasoning: [
    "outputtokens.reasoning",
    "outputtokensdetails.reasoningtokens",
    "outputtokendetails.reasoningtokens",
    "reasoningtokens",
  ],
};

const GEMINI: Family = {
  input: ["prompttokencount"],
  alsoInput: ["tooluseprompttokencount"],
  output: ["candidatestokencount", "responsetokencount"],
  cached: ["cachedcontenttokencount"],
  writes: [],
  hourWrites: [],
  reasoning: ["thoughtstokencount"],
  thoughtsAreBeside: true,
};

/** Which family an object is of: by the members that it has, as numbers or as objects. */
function familyOf(object: Input): Family | null {
  const heads = new Set(
    Object.entries(object).filter(([, value]) => value !== null).map(([name]) =>
      name.replaceAll("_", "").toLowerCase()
    ),
  );
  const hasAny = (...names: string[]) => names.some((name) => heads.has(name));
  if (hasAny("prompttokens", "completiontokens")) return CHAT;
  const isBeside = hasAny("cachecreationinputtokens", "cachereadinputtokens") ||
    hasAny("cachecreation", "cachewriteinputtokens");
  if (isBeside) return BESIDE;
  if (hasAny("inputtokens", "outputtokens")) return PLAIN;
  const isGemini = hasAny("prompttokencount", "candidatestokencount", "responsetokencount") ||
    hasAny("thoughtstokencount");
  return isGemini ? GEMINI : null;
}

const ORDINARY_TIERS = ["standard", "default", "auto", "on_demand", "traffic_type_unspecified"];

function providerReport(object: Input): Report {
  const raw = object["raw"];
  if (typeof raw === "object" && raw !== null && familyOf(raw as Input)) return providerReport(raw as Input);
  const family = familyOf(object);
  if (family === null) return durationReport(object);
  const figures = flat(object);
  const first = (names: string[]) => {
    const found = names.map((name) => figures.get(name)).find((value) => typeof value === "number");
    return typeof found === "number" ? fromNumber(found) : ZERO;
  };
  const counts = {
    input: first(family.input) + first(family.alsoInput),
    output: first(family.output),
    cached: first(family.cached),
    writes: first(family.writes),
    hourWrites: first(family.hourWrites),
    reasoning: first(family.reasoning),
  };
  if (family.cacheIsBeside) {
    const details = object["cacheDetails"];
    for (const { ttl, inputTokens } of Array.isArray(details) ? details as Input[] : []) {
      if (ttl === "1h") counts.hourWrites += fromNumber(Number(inputTokens));
    }
    const byLife = counts.hourWrites + first(["cachecreation.ephemeral5minputtokens"]);
    counts.writes = larger(counts.writes, byLife);
    counts.input += counts.cached + counts.writes;
  }
  if (family.thoughtsAreBeside) counts.output += counts.reasoning;
  const tier = figures.get("servicetier") ?? figures.get("traffictype");
  const isOtherTier = typeof tier === "string" && !ORDINARY_TIERS.includes(tier.toLowerCase());
  return { ...divided(whole(counts, first(["totaltokens", "totaltokencount"]))), isOtherTier };
}

/** No part is larger than its whole, and what only the total has is output. */
function whole(counts: Counts, total: Micros): Counts {
  const cache = counts.cached + counts.writes;
  const input = cache > counts.input ? counts.input + cache : counts.input;
  const output = larger(counts.output, total - input);
  return { ...counts, input, output: counts.reasoning > output ? output + counts.reasoning : output };
}

function durationReport({ seconds }: Input): Report {
  const nothing = {
    input: ZERO,
    output: ZERO,
    cached: ZERO,
    writes: ZERO,
    hourWrites: ZERO,
    reasoning: ZERO,
  };
  return { ...divided(nothing), speaksOfTokens: false, seconds: fromNumber(Number(seconds)) };
}
