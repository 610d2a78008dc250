// Usage objects in the shapes in which model servers and SDKs hand them over, with what each of them costs. Every call that
// takes a usage is tested with this table, usage_shapes.json, so no two of them read one object in two ways.

import shapes from "./usage_shapes.json" with { type: "json" };

/** A usage object and what it says. */
export interface UsageShape {
  readonly name: string;
  readonly usage: Readonly<Record<string, unknown>>;
  /** In the order input, cached, written to a cache, of them for an hour, output, reasoning. */
  readonly tokens: readonly [number, number, number, number, number, number];
  /** By SHAPE_PRICES. */
  readonly cents: number;
  /** Set where it names another service tier than the standard one. */
  readonly isOtherTier?: boolean;
  /** The call of OpenAI's API that answers with such an object. */
  readonly form?: "chat" | "responses" | "embeddings";
  /** Set where a model of the AI SDK reports it: in one number for the input, or in its parts. */
  readonly sdk?: "flat" | "parts";
}

/** A row in which each kind of token has a price of its own. */
export const SHAPE_PRICES = {
  id: "priced",
  modality: "text",
  amountMode: "per_token",
  inputCentsPerMillionTokens: 100,
  cachedInputCentsPerMillionTokens: 10,
  cacheWriteCentsPerMillionTokens: 125,
  cacheWrite1hCentsPerMillionTokens: 200,
  outputCentsPerMillionTokens: 400,
  reasoningCentsPerMillionTokens: 600,
} as const;

export const USAGE_SHAPES = shapes as unknown as readonly UsageShape[];

/** Answers of a model server, by call, without a usage. */
export const ANSWERS = {
  chat: {
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  },
  responses: { object: "response", status: "completed", output: [] },
  embeddings: { object: "list", data: [{ object: "embedding", index: 0, embedding: [0.5] }] },
};
