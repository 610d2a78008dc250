// The one reader of usage objects, for every call that takes one, for compose and for the gateway: what model servers and
// SDKs report, recognized by the names of their members. The README of this folder has the table of members.

import { type Amount, amountOf } from "../values/amount.ts";
import type { FieldFault } from "../values/refusal.ts";
import { NO_USAGE, type Usage } from "./usage.ts";

/** A JSON object as a caller handed it over. */
export type ProviderUsage = Readonly<Record<string, unknown>>;

interface Shape {
  /** Any of these members identifies the format. */
  readonly marks: readonly string[];
  readonly read: (first: Reader, object: ProviderUsage) => Parts;
}

/**
 * Reads the first of these members that is there, else 0. "a.b" is a member within another one. Names are those of
 * snake_case; the same name in camelCase is the same member.
 */
type Reader = (...names: readonly string[]) => Amount;

/** The reported tokens, in which a part may be larger than its whole. */
interface Parts {
  readonly input: Amount;
  readonly output?: Amount;
  readonly cached?: Amount;
  readonly writes?: Amount;
  readonly hourWrites?: Amount | undefined;
  readonly reasoning?: Amount;
}

/** In the order in which they are tried: those that count the cache beside the input are before `input_tokens`. */
const SHAPES: readonly Shape[] = [
  {
    marks: ["prompt_tokens", "completion_tokens"],
    read: (first) => ({
      input: first("prompt_tokens"),
      cached: first(
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cache_read_input_tokens",
        "cached_tokens",
      ),
      writes: first("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
      output: first("completion_tokens"),
      reasoning: first("completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
    }),
  },
  {
    marks: [
      "cache_creation_input_tokens",
      "cache_read_input_tokens",
      "cache_creation",
      "cache_write_input_tokens",
    ],
    read: readCacheBeside,
  },
  {
    marks: ["input_tokens", "output_tokens"],
    read: (first) => ({
      input: first("input_tokens.total", "input_tokens"),
      cached: first(
        "input_tokens.cache_read",
        "input_tokens_details.cached_tokens",
        "input_token_details.cached_tokens",
        "input_token_details.cache_read_tokens",
        "cached_input_tokens",
      ),
      writes: first(
        "input_tokens.cache_write",
        "input_tokens_details.cache_write_tokens",
        "input_token_details.cache_write_tokens",
        "cache_write_tokens",
      ),
      hourWrites: first("cache_write1h_tokens") || undefined,
      output: first("output_tokens.total", "output_tokens"),
      reasoning: first(
        "output_tokens.reasoning",
        "output_tokens_details.reasoning_tokens",
        "output_tokens_details.thinking_tokens",
        "output_token_details.reasoning_tokens",
        "reasoning_tokens",
      ),
    }),
  },
  {
    marks: ["prompt_token_count", "candidates_token_count", "response_token_count", "thoughts_token_count"],
    read: (first) => {
      const reasoning = first("thoughts_token_count");
      return {
        input: first("prompt_token_count") + first("tool_use_prompt_token_count"),
        cached: first("cached_content_token_count"),
        output: first("candidates_token_count", "response_token_count") + reasoning,
        reasoning,
      };
    },
  },
];

/** Anthropic's messages and Bedrock's Converse: the input excludes what the cache read and wrote. */
function readCacheBeside(first: Reader, { cacheDetails }: ProviderUsage): Parts {
  const hourWrites = first("cache_creation.ephemeral_1h_input_tokens") + hourWritesIn(cacheDetails);
  const parts = first("cache_creation.ephemeral_5m_input_tokens") + hourWrites;
  const total = first("cache_creation_input_tokens", "cache_write_input_tokens");
  const writes = total > parts ? total : parts;
  const cached = first("cache_read_input_tokens");
  return {
    input: first("input_tokens") + cached + writes,
    cached,
    writes,
    hourWrites,
    output: first("output_tokens"),
    reasoning: first("output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"),
  };
}

/** Bedrock's list of cache writes by their time to live. */
function hourWritesIn(details: unknown): Amount {
  if (!Array.isArray(details)) return 0n;
  const tokens = details.map((each) =>
    memberOf(each, "ttl") === "1h" ? memberOf(each, "inputTokens") : undefined
  );
  return tokens.filter(isTokens).reduce((sum, count) => sum + amountOf(count), 0n);
}

/** Reads the usage that an object reports, or its fault; paths are within the object. */
export function readProviderUsage(object: ProviderUsage): Usage | FieldFault {
  // The AI SDK keeps the server's own object beside its own numbers, which leave out some of it.
  const raw = isObject(object.raw) ? readProviderUsage({ ...object.raw, raw: null }) : null;
  if (raw !== null && !("path" in raw)) return raw;
  if (Array.isArray(object.iterations) && object.iterations.length > 0) {
    return usageOfIterations(object.iterations, object);
  }
  if (isDuration(object)) return { ...NO_USAGE, seconds: amountOf(object.seconds) };
  const shape = shapeOf(object);
  if (shape === undefined) {
    return { path: "", message: "is not a usage object that is known: see the members of usage" };
  }
  let fault: FieldFault | null = null;
  const parts = shape.read((...names) => {
    for (const name of names) {
      const { path, value } = reportedAt(object, name);
      if (isObject(value) && names.length > 1) continue;
      if (!isReported(value)) continue;
      if (isTokens(value)) return amountOf(value);
      fault ??= { path, message: "must be a number of at least 0" };
    }
    return 0n;
  }, object);
  return fault ?? usageOf(parts, object);
}

/**
 * The usage of a message that took several runs of a model, such as one that was compacted first: their sum, since the
 * members beside them count the last run alone.
 */
function usageOfIterations(iterations: readonly unknown[], object: ProviderUsage): Usage | FieldFault {
  const sum: Record<string, Amount | null> = {};
  for (const [place, iteration] of iterations.entries()) {
    const path = `iterations[${place}]`;
    if (!isObject(iteration)) return { path, message: "must be an object" };
    const usage = readProviderUsage({ ...iteration, iterations: null, raw: null });
    if ("path" in usage) return { ...usage, path: usage.path === "" ? path : `${path}.${usage.path}` };
    for (const [name, amount] of Object.entries(usage)) {
      if (typeof amount === "bigint") sum[name] = (sum[name] ?? 0n) + amount;
    }
  }
  return { ...NO_USAGE, ...sum, ...namesOtherTier(object) ? { isOtherTier: true } : {} };
}

/**
 * A usage of parts and wholes. Parts larger than their whole were counted beside it, and are added. What a total has
 * above input and output is output: some servers leave their reasoning out of it.
 */
function usageOf(
  { input, output = 0n, cached, writes, hourWrites, reasoning }: Parts,
  object: ProviderUsage,
): Usage {
  const ofCache = (cached ?? 0n) + (writes ?? 0n);
  const inputTokens = ofCache > input ? input + ofCache : input;
  const { value } = reportedAt(object, "total_tokens", "total_token_count");
  const total = isTokens(value) ? amountOf(value) : 0n;
  const sum = inputTokens + output;
  const withRest = total > sum ? output + total - sum : output;
  return {
    ...NO_USAGE,
    inputTokens,
    cachedInputTokens: cached ?? null,
    cacheWriteTokens: writes ?? null,
    cacheWrite1hTokens: hourWrites ?? null,
    outputTokens: (reasoning ?? 0n) > withRest ? withRest + (reasoning ?? 0n) : withRest,
    reasoningTokens: reasoning ?? null,
    ...namesOtherTier(object) ? { isOtherTier: true } : {},
  };
}

/** Names of the ordinary service tier and speed, whose prices a catalog has. */
const STANDARD_TIERS: ReadonlySet<string> = new Set([
  "standard",
  "default",
  "auto",
  "on_demand",
  "traffic_type_unspecified",
]);

function namesOtherTier(object: ProviderUsage): boolean {
  const named = [reportedAt(object, "service_tier", "traffic_type"), reportedAt(object, "speed")];
  return named.some(({ value }) => typeof value === "string" && !STANDARD_TIERS.has(value.toLowerCase()));
}

function shapeOf(object: ProviderUsage): Shape | undefined {
  return SHAPES.find(({ marks }) => marks.some((name) => isReported(reportedAt(object, name).value)));
}

/** Transcriptions of OpenAI that are billed by their duration. */
function isDuration(
  object: ProviderUsage,
): object is { readonly type: "duration"; readonly seconds: number } {
  return object.type === "duration" && isTokens(object.seconds);
}

/** The first of these members that is there, with its path in the object that was sent. */
function reportedAt(object: ProviderUsage, ...names: readonly string[]): { path: string; value: unknown } {
  let found: { path: string; value: unknown } = { path: names[0] ?? "", value: undefined };
  for (const name of names) {
    const path: string[] = [];
    let value: unknown = object;
    for (const part of name.split(".")) {
      const member = isObject(value) && !Object.hasOwn(value, part) ? camelCase(part) : part;
      path.push(member);
      value = memberOf(value, member);
    }
    found = { path: path.join("."), value };
    if (isReported(value)) break;
  }
  return found;
}

/** "input_tokens" as "inputTokens". */
function camelCase(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function isReported(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const TOKENS_MAX = 1e12;

function isTokens(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= TOKENS_MAX;
}

function isObject(value: unknown): value is ProviderUsage {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/**
 * Reads a model server's own report, where no caller receives a fault: without its details if they are faulty. Null where
 * it reports no usage.
 */
export function readReport(report: unknown): Usage | null {
  if (!isObject(report)) return null;
  const detailed = readProviderUsage(report);
  if (!("path" in detailed)) return detailed;
  const numbers = Object.entries(report).filter(([, value]) => isTokens(value));
  const bare = readProviderUsage(Object.fromEntries(numbers));
  return "path" in bare ? null : bare;
}
