// Middleware for the models of the AI SDK (package `ai`): `holdfast-client/ai`. For language models from version 5 on, for
// models of images and embeddings from version 6 on. Each call of a model is reserved before it is made and settled when it
// has ended. Each step of a run with tools is such a call.

import {
  ANSWER_TOKENS,
  estimateInput,
  isTokens,
  type ModelMetering,
  type OpenCall,
  openCall,
} from "./model_calls.ts";
import { type PieceReader, settlingStream } from "./settling_stream.ts";

/** The parameters of a call that are read here; every version of the SDK has them. */
export interface ModelParams {
  readonly prompt: unknown;
  readonly maxOutputTokens?: number | undefined;
  readonly tools?: unknown;
  readonly responseFormat?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
}

/** The parameters of a call of an image model that are read here. */
export interface ImageParams {
  readonly prompt?: unknown;
  readonly n: number;
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: ModelParams["providerOptions"];
}

/** The parameters of a call of an embedding model that are read here. */
export interface EmbeddingParams {
  readonly values: readonly unknown[];
  readonly abortSignal?: AbortSignal | undefined;
  readonly providerOptions?: ModelParams["providerOptions"];
}

/** The parts of a model that are read here. */
export interface Model {
  readonly modelId: string;
  readonly provider: string;
}

/** Middleware for `wrapLanguageModel` of every version from 5 on. */
export interface HoldfastMiddleware {
  // deno-lint-ignore no-explicit-any -- each version declares its own number here, but reads none
  readonly specificationVersion: any;
  wrapGenerate<Result>(
    options: { doGenerate: () => PromiseLike<Result>; params: ModelParams; model: Model },
  ): Promise<Result>;
  wrapStream<Result>(
    options: { doStream: () => PromiseLike<Result>; params: ModelParams; model: Model },
  ): Promise<Result>;
}

/**
 * Meters every call of a model. A refused call rejects with a `HoldfastError` of status 429, with the first reason as
 * code, and the model is not called.
 *
 * @example With the user of each call in its provider options
 * ```tsx
 * const userId = ({ providerOptions }: ModelParams) => String(providerOptions?.holdfast?.userId);
 * const middleware = holdfastMiddleware({ client, userId, event: "chat.reply" });
 * const model = wrapLanguageModel({ model: openai("gpt-4o-mini"), middleware });
 * await generateText({ model, prompt: "Write a haiku.", providerOptions: { holdfast: { userId: "user_1" } } });
 * ```
 */
export function holdfastMiddleware(metering: ModelMetering<ModelParams>): HoldfastMiddleware {
  const begin = (params: ModelParams, { modelId }: Model) => {
    const { prompt, tools, responseFormat, maxOutputTokens = ANSWER_TOKENS, abortSignal } = params;
    const input = estimateInput([prompt, tools, responseFormat], params.providerOptions);
    return openCall(metering, params, modelId, { ...input, maxOutputTokens }, abortSignal);
  };
  return {
    specificationVersion: "v4",
    async wrapGenerate({ doGenerate, params, model }) {
      const call = await begin(params, model);
      const result = await orFail(call, params, doGenerate);
      const { content, usage, providerMetadata } = result as Generated;
      for (const part of content ?? []) {
        call.addText(part.text ?? (part.toolCallId ? part.input : null) ?? "");
        if (WORK.has(part.type)) call.addWork();
      }
      reportTo(call, usage, providerMetadata, model);
      await call.finish();
      return result;
    },
    async wrapStream<Result>(
      { doStream, params, model }: {
        doStream: () => PromiseLike<Result>;
        params: ModelParams;
        model: Model;
      },
    ) {
      const call = await begin(params, model);
      const result = await orFail(call, params, doStream);
      const { stream } = result as { readonly stream: ReadableStream<StreamPart> };
      const reader = new PartReader(call, model);
      return { ...result, stream: settlingStream(stream, call, reader, params.abortSignal) };
    },
  };
}

/** Middleware for `wrapImageModel` of every version from 6 on. */
export interface HoldfastImageMiddleware {
  // deno-lint-ignore no-explicit-any -- each version declares its own number here, but reads none
  readonly specificationVersion: any;
  wrapGenerate<Result>(
    options: { doGenerate: () => PromiseLike<Result>; params: ImageParams; model: Model },
  ): Promise<Result>;
}

/**
 * Meters every call of an image model: held by the images that are asked for, charged by those that came.
 *
 * @example
 * ```tsx
 * const middleware = holdfastImageMiddleware({ client, userId: "user_1", event: "image.render" });
 * const model = wrapImageModel({ model: openai.image("gpt-image-1"), middleware });
 * const { images } = await generateImage({ model, prompt: "A pond.", n: 4 });
 * ```
 */
export function holdfastImageMiddleware(metering: ModelMetering<ImageParams>): HoldfastImageMiddleware {
  return {
    specificationVersion: "v4",
    async wrapGenerate({ doGenerate, params, model }) {
      const size = { ...estimateInput([params.prompt]), count: params.n };
      const call = await openCall(metering, params, model.modelId, size, params.abortSignal);
      const result = await orFail(call, params, doGenerate);
      const { images, usage } = result as { readonly images: readonly unknown[]; readonly usage?: SdkUsage };
      call.reportImages(images.length, usage?.inputTokens, usage?.outputTokens);
      await call.finish();
      return result;
    },
  };
}

/** Middleware for `wrapEmbeddingModel` of every version from 6 on. */
export interface HoldfastEmbeddingMiddleware {
  // deno-lint-ignore no-explicit-any -- as above
  readonly specificationVersion: any;
  wrapEmbed<Result>(
    options: { doEmbed: () => PromiseLike<Result>; params: EmbeddingParams; model: Model },
  ): Promise<Result>;
}

/**
 * Meters every call of an embedding model by the tokens of its input.
 *
 * @example
 * ```tsx
 * const middleware = holdfastEmbeddingMiddleware({ client, userId: "user_1", event: "chat.search" });
 * const model = wrapEmbeddingModel({ model: openai.embedding("text-embedding-3-small"), middleware });
 * const { embedding } = await embed({ model, value: "A pond." });
 * ```
 */
export function holdfastEmbeddingMiddleware(
  metering: ModelMetering<EmbeddingParams>,
): HoldfastEmbeddingMiddleware {
  return {
    specificationVersion: "v4",
    async wrapEmbed({ doEmbed, params, model }) {
      const size = estimateInput([params.values]);
      const call = await openCall(metering, params, model.modelId, size, params.abortSignal);
      const result = await orFail(call, params, doEmbed);
      const { embeddings, usage } = result as Embedded;
      if (embeddings.length > 0) call.addWork();
      if (isTokens(usage?.tokens)) call.report({ usage: { inputTokens: usage.tokens, outputTokens: 0 } });
      await call.finish();
      return result;
    },
  };
}

interface Embedded {
  readonly embeddings: readonly unknown[];
  readonly usage?: { readonly tokens: number };
}

/** Calls the model, and settles the call if that fails. */
async function orFail<Result>(
  call: OpenCall,
  { abortSignal }: Pick<ModelParams, "abortSignal">,
  ask: () => PromiseLike<Result>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    await (abortSignal?.aborted === true ? call.leave() : call.fail(error));
    throw error;
  }
}

type Loose = Readonly<Record<string, unknown>>;
type ProviderMetadata = Readonly<Record<string, Loose | undefined>>;

/** The parts of a complete answer that are read here. */
interface Generated {
  readonly content?: readonly {
    readonly type: string;
    readonly text?: string;
    readonly toolCallId?: string;
    readonly input?: string;
  }[];
  readonly usage?: SdkUsage | undefined;
  readonly providerMetadata?: ProviderMetadata | undefined;
}

/** The members of a part of a stream that are read here. */
interface StreamPart extends Pick<Generated, "usage" | "providerMetadata"> {
  readonly type: string;
  readonly id?: string;
  readonly delta?: unknown;
  readonly toolCallId?: string;
  readonly input?: unknown;
}

/** The usage of the SDK: flat in version 5, with parts from version 6 on. */
interface SdkUsage {
  readonly inputTokens?: number | undefined | {
    readonly total?: number | undefined;
    readonly cacheRead?: number | undefined;
    readonly cacheWrite?: number | undefined;
  };
  readonly outputTokens?: number | undefined | {
    readonly total?: number | undefined;
    readonly reasoning?: number | undefined;
  };
  readonly cachedInputTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  /** From version 6 on: the object of the server. */
  readonly raw?: unknown;
}

/** Parts that are work of the model without being text. */
const WORK: ReadonlySet<string> = new Set(["tool-call", "tool-result", "file", "source"]);
const DELTAS: ReadonlySet<string> = new Set(["text-delta", "reasoning-delta", "tool-input-delta"]);

/** Reads the parts of a stream, and passes all of them on. */
class PartReader implements PieceReader<StreamPart> {
  hasEnded = false;
  readonly #call: OpenCall;
  readonly #model: Model;
  /** Ids of tool calls with input in pieces, so that their input counts once. */
  readonly #streamed = new Set<string | undefined>();

  constructor(call: OpenCall, model: Model) {
    this.#call = call;
    this.#model = model;
  }

  take(part: StreamPart): readonly StreamPart[] {
    if (WORK.has(part.type)) this.#call.addWork();
    if (DELTAS.has(part.type)) {
      if (part.type === "tool-input-delta") this.#streamed.add(part.id);
      this.#call.addText(String(part.delta));
    } else if (part.type === "tool-call" && !this.#streamed.has(part.toolCallId)) {
      if (typeof part.input === "string") this.#call.addText(part.input);
    } else if (part.type === "finish") {
      reportTo(this.#call, part.usage, part.providerMetadata, this.#model);
      this.hasEnded = true;
    }
    return [part];
  }

  rest(): readonly StreamPart[] {
    return [];
  }
}

/** Passes on the usage that the model reported: the server's own object first, which leaves nothing out. */
function reportTo(
  call: OpenCall,
  usage: SdkUsage | undefined,
  metadata: ProviderMetadata | undefined,
  model: Model,
): void {
  if (usage === undefined) return;
  const { raw = metadata?.google?.usageMetadata ?? metadata?.anthropic?.usage, ...numbers } = usage;
  const forms = isObject(raw) ? [raw] : [];
  const whole = withEstimates(call, withCache(numbers, metadata, model));
  if (whole !== null) forms.push(whole);
  if (forms.length > 0) call.report(...forms.map((providerUsage) => ({ providerUsage })));
}

/** The SDK's own numbers, with estimates for totals that are missing; null without any. */
function withEstimates(call: OpenCall, numbers: SdkUsage): Loose | null {
  const [input, output] = [totalOf(numbers.inputTokens), totalOf(numbers.outputTokens)];
  if (input === undefined && output === undefined) return null;
  const { inputTokens, outputTokens } = call.estimate();
  return {
    ...numbers,
    inputTokens: input === undefined ? inputTokens : numbers.inputTokens,
    outputTokens: output === undefined ? outputTokens : numbers.outputTokens,
  };
}

function totalOf(tokens: SdkUsage["inputTokens" | "outputTokens"]): number | undefined {
  return typeof tokens === "object" ? tokens.total : tokens;
}

/** Version 5 has the input of the server, and Anthropic does not count the cache in it: here it is added. */
function withCache(
  usage: SdkUsage,
  metadata: ProviderMetadata | undefined,
  { provider }: Model,
): SdkUsage & { readonly cacheWriteTokens?: number } {
  const { inputTokens, cachedInputTokens = 0 } = usage;
  if (typeof inputTokens !== "number" || !/anthropic|bedrock/.test(provider)) return usage;
  const bedrock = metadata?.bedrock?.usage as Loose | undefined;
  const written = metadata?.anthropic?.cacheCreationInputTokens ?? bedrock?.cacheWriteInputTokens;
  const cacheWriteTokens = typeof written === "number" ? written : 0;
  return { ...usage, inputTokens: inputTokens + cachedInputTokens + cacheWriteTokens, cacheWriteTokens };
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
