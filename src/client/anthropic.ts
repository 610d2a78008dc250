// The `@anthropic-ai/sdk` package, metered: `holdfast-client/anthropic`.

import { type CallBody, meterSender, type Provider, type SenderOptions } from "./metered_sender.ts";
import { ANSWER_TOKENS, estimateInput } from "./model_calls.ts";

/** A client of the `@anthropic-ai/sdk` package. */
export interface AnthropicClient {
  readonly baseURL: string;
  readonly messages: object;
  // deno-lint-ignore no-explicit-any -- the options of every version and subclass
  withOptions(options: any): unknown;
}

/** The body of a call from its caller. */
export type AnthropicCall = CallBody;

/** The user and event of metered calls. */
export interface MeterAnthropicOptions extends SenderOptions {
  /** By default `anthropic.messages`. */
  readonly event?: string | undefined;
  /**
   * Called once for each kind of call that passes unmetered, such as `/messages/batches`; by default a warning on the
   * console. Give an empty function for calls that you meter yourself.
   */
  readonly onUnmetered?: ((kind: string) => void) | undefined;
}

/**
 * Makes a metered client from another one. It meters messages, those of `beta` too. A refused call rejects with a
 * `HoldfastError` of status 429, with the first reason as code, and nothing is sent to the model. Retries of one call share
 * its reservation. Tools that Anthropic runs, such as its web search, are charged by their tokens alone.
 *
 * @example
 * ```tsx
 * const anthropic = meterAnthropic(new Anthropic(), { client, userId: "user_1", event: "chat.reply" });
 * const message = await anthropic.messages.create({
 *   model: "claude-sonnet-5",
 *   max_tokens: 100,
 *   messages: [{ role: "user", content: "Write a haiku." }],
 * });
 * console.log(message.content[0]); // { type: "text", text: "Old pond..." }
 * ```
 */
export function meterAnthropic<Client extends AnthropicClient>(
  anthropic: Client,
  options: MeterAnthropicOptions,
): Client {
  return meterSender(anthropic, options, PROVIDER);
}

const PROVIDER: Provider = {
  kinds: new Map([["/v1/messages", { event: "anthropic.messages", shape: "messages" }]]),
  free: new Set(["/v1/messages/count_tokens"]),
  nameOf: (path) => path.replace(/^\/v1/, ""),
  estimate: ({ system, messages, tools, cache_control, max_tokens: limit }) => ({
    ...estimateInput([system, messages, tools], { cache_control }),
    maxOutputTokens: typeof limit === "number" ? limit : ANSWER_TOKENS,
  }),
  prepare: () => ({ hidesUsage: false }),
};
