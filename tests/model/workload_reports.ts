// Reports of model servers for commits and tracks: mostly our own members, else those of a server or an SDK, with parts
// and totals that do not fit together.

import type { Input } from "./document.ts";
import type { Random } from "./random.ts";
import { amount } from "./workload_inputs.ts";

/** What a model server reported. */
export function reported(random: Random, rooms: number[]): Input {
  const tokens = () => random.chance(0.1) ? 0 : amount(random, rooms);
  const kind = random.weighted({ own: 60, openai: 12, anthropic: 12, gemini: 6, sdk: 6, bedrock: 4 });
  if (kind === "own") return { usage: ownUsage(random, tokens) };
  return { providerUsage: SHAPES[kind](random, tokens) };
}

/** Some part of a whole, at most half of it. */
function few(random: Random, whole: number): number {
  return Math.min(whole, random.pick([0, Math.floor(whole), Number((whole / 4).toFixed(4))])) / 2;
}

/** A part that is larger than its whole at times. */
function part(random: Random, whole: number): number {
  return random.chance(0.15) ? whole + random.whole(1, 5) : few(random, whole);
}

function ownUsage(random: Random, tokens: () => number): Input {
  const usage: Record<string, number> = {};
  const [input, output] = [tokens(), tokens()];
  if (random.chance(0.75)) {
    usage["inputTokens"] = input;
    if (random.chance(0.4)) usage["cachedInputTokens"] = few(random, input);
    if (random.chance(0.3)) {
      usage["cacheWriteTokens"] = few(random, input);
      if (random.chance(0.5)) usage["cacheWrite1hTokens"] = few(random, usage["cacheWriteTokens"]);
    }
  }
  if (random.chance(0.75)) {
    usage["outputTokens"] = output;
    if (random.chance(0.4)) usage["reasoningTokens"] = few(random, output);
  }
  if (random.chance(0.3)) usage["seconds"] = tokens();
  if (random.chance(0.3) || Object.keys(usage).length === 0) usage["calls"] = random.whole(0, 4);
  return usage;
}

type Shape = (random: Random, tokens: () => number) => Input;

const SHAPES: Record<"openai" | "anthropic" | "gemini" | "sdk" | "bedrock", Shape> = {
  openai: (random, tokens) => {
    const [input, output] = [tokens(), tokens()];
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: random.pick([1, input + output, input + output + random.whole(1, 9)]),
      prompt_tokens_details: { cached_tokens: part(random, input), audio_tokens: 0 },
      completion_tokens_details: random.pick([null, { reasoning_tokens: part(random, output) }]),
      ...(random.chance(0.2) ? { service_tier: random.pick(["default", "flex", "priority"]) } : {}),
    };
  },
  anthropic: (random, tokens) => {
    const written = random.whole(0, 4);
    return {
      input_tokens: tokens(),
      cache_read_input_tokens: random.whole(0, 3),
      cache_creation_input_tokens: written,
      cache_creation: random.pick([null, { ephemeral_1h_input_tokens: Math.floor(written / 2) }]),
      output_tokens: tokens(),
      service_tier: random.pick(["standard", "standard", "batch"]),
    };
  },
  gemini: (random, tokens) => {
    const [input, output] = [tokens(), tokens()];
    return {
      promptTokenCount: input,
      cachedContentTokenCount: few(random, input),
      [random.pick(["candidatesTokenCount", "responseTokenCount"])]: output,
      thoughtsTokenCount: random.whole(0, 3),
      toolUsePromptTokenCount: random.whole(0, 2),
      totalTokenCount: random.pick([0, input + output + 20]),
      trafficType: "ON_DEMAND",
    };
  },
  sdk: (random, tokens) => {
    const [input, output] = [tokens(), tokens()];
    const flat = {
      inputTokens: input,
      outputTokens: output,
      totalTokens: input + output + random.whole(0, 2),
      cachedInputTokens: part(random, input),
      reasoningTokens: part(random, output),
    };
    const nested = {
      inputTokens: { total: input, cacheRead: few(random, input), cacheWrite: few(random, input) },
      outputTokens: { total: output, reasoning: part(random, output) },
    };
    const raw = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output + 1 };
    return random.pick([flat, nested, { ...nested, raw }, { ...nested, raw: { tokens: input } }]);
  },
  bedrock: (random, tokens) => ({
    inputTokens: tokens(),
    outputTokens: tokens(),
    totalTokens: random.whole(0, 9),
    cacheReadInputTokens: random.whole(0, 4),
    cacheWriteInputTokens: random.whole(0, 4),
  }),
};
