// The usage objects of model servers, taken as they come: OpenAI's chat completions, completions, embeddings and
// responses, Anthropic's messages and Gemini's usageMetadata, recognized by the names of their members. The README of
// this folder has the table of fields.

import { type Amount, amountOf } from "../values/amount.ts";
import type { FieldFault } from "../values/refusal.ts";
import { NO_USAGE, type Usage, usageFault } from "./usage.ts";

/** A JSON object as a caller handed it over. */
export type ProviderUsage = Readonly<Record<string, unknown>>;

interface Shape {
  /** Any of these members identifies the format. */
  readonly marks: readonly string[];
  readonly read: (member: Reader) => Partial<Usage>;
}

/** Reads the number of a member, or of a member within it; null and absent members are 0. */
type Reader = (name: string, inner?: string) => Amount;

/** In the order in which they are tried: Anthropic's marks before `input_tokens`, which OpenAI's responses have too. */
const SHAPES: readonly Shape[] = [
  {
    marks: ["prompt_tokens", "completion_tokens"],
    read: (member) => ({
      inputTokens: member("prompt_tokens"),
      cachedInputTokens: member("prompt_tokens_details", "cached_tokens"),
      cacheWriteTokens: member("prompt_tokens_details", "cache_write_tokens"),
      outputTokens: member("completion_tokens"),
      reasoningTokens: member("completion_tokens_details", "reasoning_tokens"),
    }),
  },
  {
    marks: ["cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"],
    read: (member) => {
      const hourWrites = member("cache_creation", "ephemeral_1h_input_tokens");
      const parts = member("cache_creation", "ephemeral_5m_input_tokens") + hourWrites;
      const total = member("cache_creation_input_tokens");
      const cacheWriteTokens = total > parts ? total : parts;
      const cachedInputTokens = member("cache_read_input_tokens");
      return {
        inputTokens: member("input_tokens") + cachedInputTokens + cacheWriteTokens,
        cachedInputTokens,
        cacheWriteTokens,
        cacheWrite1hTokens: hourWrites,
        outputTokens: member("output_tokens"),
        reasoningTokens: member("output_tokens_details", "reasoning_tokens"),
      };
    },
  },
  {
    marks: ["input_tokens", "output_tokens"],
    read: (member) => ({
      inputTokens: member("input_tokens"),
      cachedInputTokens: member("input_tokens_details", "cached_tokens"),
      cacheWriteTokens: member("input_tokens_details", "cache_write_tokens"),
      outputTokens: member("output_tokens"),
      reasoningTokens: member("output_tokens_details", "reasoning_tokens"),
    }),
  },
  {
    marks: ["promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"],
    read: (member) => {
      const reasoningTokens = member("thoughtsTokenCount");
      return {
        inputTokens: member("promptTokenCount") + member("toolUsePromptTokenCount"),
        cachedInputTokens: member("cachedContentTokenCount"),
        outputTokens: member("candidatesTokenCount") + reasoningTokens,
        reasoningTokens,
      };
    },
  },
];

/** Reads the usage that a model server's object reports, or its fault; paths are within the object. */
export function readProviderUsage(object: ProviderUsage): Usage | FieldFault {
  const shape = SHAPES.find(({ marks }) => marks.some((name) => isReported(object[name])));
  if (shape === undefined) {
    return { path: "", message: "is not a usage object of OpenAI, Anthropic or Gemini" };
  }
  let fault: FieldFault | null = null;
  const usage = {
    ...NO_USAGE,
    ...shape.read((name, inner) => {
      const outer = memberOf(object, name);
      const value = inner === undefined ? outer : memberOf(outer, inner);
      if (value === undefined || value === null) return 0n;
      if (isTokens(value)) return amountOf(value);
      const path = inner === undefined ? name : `${name}.${inner}`;
      fault ??= { path, message: "must be a number of at least 0" };
      return 0n;
    }),
  };
  return fault ?? contradictionIn(usage) ?? usage;
}

/** The contradiction within an object, as a fault of the whole: its members have other names than a usage's. */
function contradictionIn(usage: Usage): FieldFault | null {
  const fault = usageFault(usage);
  if (fault === null) return null;
  const part = fault.path === "reasoningTokens"
    ? "reasoning than output"
    : "cached and cache-written tokens than input";
  return { path: "", message: `contradicts itself: it reports more ${part}` };
}

function isReported(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const TOKENS_MAX = 1e12;

function isTokens(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= TOKENS_MAX;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as ProviderUsage)[name];
}

const TOTALS = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"] as const;

/** Reads a model server's own report, without parts that contradict its totals. Null where it reports no usage. */
export function readReport(report: unknown): Usage | null {
  if (typeof report !== "object" || report === null) return null;
  const object = report as ProviderUsage;
  const detailed = readProviderUsage(object);
  if (!("path" in detailed)) return detailed;
  const totals = readProviderUsage(Object.fromEntries(TOTALS.map((name) => [name, object[name]])));
  return "path" in totals ? null : totals;
}
