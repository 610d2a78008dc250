// Meters a client of a model server's own package where it sends its requests, so that everything built on them is metered
// too: streams, parsed answers, runs with tools. Every call of a model is reserved before it is sent and settled when its
// answer has been read.

import type { AnswerShape } from "./answer_shapes.ts";
import { meteredAnswer } from "./model_answers.ts";
import { type CallEstimate, type ModelMetering, type OpenCall, openCall } from "./model_calls.ts";

/** The body of a call from its caller. */
export type CallBody = Readonly<Record<string, unknown>>;

/** The user and event of metered calls. */
export interface SenderOptions extends Omit<ModelMetering<CallBody>, "event"> {
  readonly event?: string | undefined;
  readonly onUnmetered?: ((kind: string) => void) | undefined;
}

/** A client of a package. */
export interface SenderClient {
  // deno-lint-ignore no-explicit-any -- the options of every version and subclass
  withOptions(options: any): unknown;
}

/** A kind of metered call. */
export interface CallKind {
  /** The event type, where the caller names none. */
  readonly event: string;
  readonly shape: AnswerShape;
}

/** What differs between the packages. */
export interface Provider {
  /** The calls of models, by their paths without a query. */
  readonly kinds: ReadonlyMap<string, CallKind>;
  /** Paths of calls that cost nothing, so that they pass without a warning. */
  readonly free: ReadonlySet<string>;
  /** How a kind of unmetered calls is called, by the path. */
  nameOf(path: string): string;
  /** The most that a call may use. */
  estimate(body: CallBody, shape: AnswerShape): CallEstimate;
  /** Checks a body; returns the one to send in its place, and whether the caller did not ask for the event of the usage. */
  prepare(body: CallBody, shape: AnswerShape): { readonly body?: CallBody; readonly hidesUsage: boolean };
}

type Fetch = (url: string | URL | Request, init?: RequestInit & { [CALL]?: Meter }) => Promise<Response>;

/** Parts of a client that its public types do not have. */
interface Sender {
  readonly fetch?: Fetch;
  post(path: string, options?: unknown): { asResponse(): Promise<Response> };
  withOptions(options: unknown): SenderClient;
}

/** The options of a request within the package. */
interface RequestOptions {
  /** Fields of a form for a call with files. */
  readonly body?: CallBody | FormData;
  readonly signal?: AbortSignal | null;
  readonly fetchOptions?: object;
}

/** Carries a call from its request to `fetch`. */
const CALL = Symbol("metered call");

/** Makes a metered client from another one. */
export function meterSender<Client extends SenderClient>(
  client: Client,
  options: SenderOptions,
  provider: Provider,
): Client {
  const send: Fetch = (client as unknown as Sender).fetch ?? globalThis.fetch;
  const metered = client.withOptions({ fetch: meteredFetch(send) }) as Client;
  const sender = metered as unknown as { -readonly [Member in keyof Sender]: Sender[Member] };
  const post = sender.post.bind(sender);
  const { onUnmetered = warn } = options;
  // Clients that are made from this one share its warnings.
  const warned = WARNED.get(options) ?? new Set<string>();
  WARNED.set(options, warned);
  sender.post = (path, given) => {
    const [plain = path] = path.split("?");
    const kind = provider.kinds.get(plain);
    if (kind === undefined) {
      const name = provider.nameOf(plain);
      if (!provider.free.has(plain) && !warned.has(name)) {
        onUnmetered(name);
        warned.add(name);
      }
      return post(path, given);
    }
    const begun = begin(kind, given as RequestOptions | Promise<RequestOptions>, options, provider);
    const answer = post(path, begun.then(({ request }) => request));
    // Without an answer there is no end of one at which to settle.
    answer.asResponse().catch(async (error) => {
      const { call, request } = await begun;
      await (request.signal?.aborted === true ? call.leave() : call.fail(error));
    }).catch(() => {});
    return answer;
  };
  sender.withOptions = (more) => meterSender(client.withOptions(more) as Client, options, provider);
  return metered;
}

/** The kinds of calls that were warned of, by the options of their client. */
const WARNED = new WeakMap<SenderOptions, Set<string>>();

function warn(kind: string): void {
  console.warn(`holdfast: calls of ${kind} are not metered`);
}

/** Reserves for a call and makes its request. */
async function begin(
  { event, shape }: CallKind,
  given: RequestOptions | Promise<RequestOptions>,
  options: SenderOptions,
  provider: Provider,
): Promise<{ readonly call: OpenCall; readonly request: RequestOptions }> {
  const request = await given;
  const { signal } = request;
  const body = fieldsOf(request.body);
  const { hidesUsage, ...other } = provider.prepare(body, shape);
  const model = typeof body.model === "string" ? body.model : undefined;
  const metering = { ...options, event: options.event ?? event };
  const call = await openCall(metering, body, model, provider.estimate(body, shape), signal);
  const meter: Meter = (answer, signal) => meteredAnswer(answer, call, { shape, hidesUsage, signal });
  const fetchOptions = { ...request.fetchOptions, [CALL]: meter };
  return { call, request: { ...request, ...other, fetchOptions } };
}

/** The members of a body, without files. */
function fieldsOf(body: CallBody | FormData = {}): CallBody {
  if (!(body instanceof FormData)) return body;
  const texts = [...body].filter(([, value]) => typeof value === "string");
  return { ...Object.fromEntries(texts), n: Number(body.get("n") ?? 1) };
}

/** Makes `fetch` settle the call with its answer. */
type Meter = (answer: Response, signal: AbortSignal | null | undefined) => Response;

function meteredFetch(send: Fetch): Fetch {
  return async (url, init = {}) => {
    const { [CALL]: meter, ...rest } = init;
    const answer = await send(url, rest);
    return meter === undefined || !answer.ok ? answer : meter(answer, rest.signal);
  };
}
