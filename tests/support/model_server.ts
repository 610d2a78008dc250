// An OpenAI-compatible model server on a free port of this machine: it answers as a test says, well or wrongly, late,
// with an error, or not at all. It speaks HTTP over bare connections, since a server library would not let go of one
// half-way. Run by itself it answers every call with a sample, of the schema where one came with it:
//
//   deno run --allow-net=127.0.0.1 tests/support/model_server.ts 8123

import { Buffer } from "node:buffer";
import { messageReply } from "./anthropic_replies.ts";

/** A call as it came. */
export interface ModelRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  /** Its first line and its headers. */
  readonly top: string;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  readonly body: any;
  /** The body as it came. */
  readonly text: string;
  /** Resolves when the caller closes the connection before its answer is complete. */
  readonly left: Promise<void>;
}

/** What the server does with a call. */
export type ModelReply =
  | { readonly content: string | null; readonly usage?: ModelUsage | null }
  | {
    readonly status: number;
    readonly body: string | Uint8Array;
    readonly headers?: Readonly<Record<string, string>>;
  }
  /** Any answer as JSON. */
  | { readonly answer: unknown }
  /** Server-sent events, or pieces of another type, each as a whole; written when its reader has taken those before. */
  | {
    readonly events: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;
    readonly type?: string;
    /** Whether the last one is cut off by the end of the connection. */
    readonly cutsOff?: boolean;
  }
  /** Ends the connection before an answer, or within one. */
  | { readonly drop: "before" | "within" }
  /** Begins an answer and waits before it ends the connection. */
  | { readonly stall: Promise<void>; readonly status?: number };

export interface ModelUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: Readonly<Record<string, unknown>> | null;
  readonly completion_tokens_details?: Readonly<Record<string, unknown>> | null;
}

export const USAGE: ModelUsage = { prompt_tokens: 1000, completion_tokens: 500 };

/** A model server under test. */
export class ModelServer {
  readonly requests: ModelRequest[] = [];
  /** Told by a test; by default every call is answered well. */
  reply: (request: ModelRequest, place: number) => ModelReply | Promise<ModelReply> = sampleReply;
  readonly #listener: Deno.TcpListener;
  readonly #open = new Set<Deno.Conn>();
  readonly #done: Promise<void>;
  #isClosed = false;

  constructor(port = 0) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port });
    this.#done = this.#accept();
  }

  /** What OPENAI_BASE_URL is set to. */
  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#listener.addr as Deno.NetAddr).port}/v1`;
  }

  /** The prompts that came, oldest first. */
  prompts(): string[] {
    return this.requests.map(({ body }) => body.messages.at(-1).content);
  }

  /** Answers as by default again and forgets what came. */
  reset(): void {
    this.requests.length = 0;
    this.reply = sampleReply;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listener.close();
    for (const connection of this.#open) this.#end(connection);
    await this.#done;
  }

  async #accept(): Promise<void> {
    const calls: Promise<void>[] = [];
    try {
      for await (const connection of this.#listener) {
        this.#open.add(connection);
        // A client that gave up has closed its side.
        calls.push(this.#serve(connection).catch(() => {}).finally(() => this.#end(connection)));
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
    await Promise.all(calls);
  }

  async #stream(
    connection: Deno.Conn,
    { events, type = "text/event-stream", cutsOff = false }: Extract<
      ModelReply,
      { readonly events: unknown }
    >,
  ): Promise<void> {
    const headers = { "content-type": type, "transfer-encoding": "chunked" };
    await write(connection, head(200, null, headers));
    let last: Uint8Array | null = null;
    for await (const event of events) {
      if (last !== null) await write(connection, last);
      last = chunkOf(event);
      if (cutsOff) continue;
      await write(connection, last);
      last = null;
    }
    await write(connection, last === null ? "0\r\n\r\n" : last.subarray(0, -3));
  }

  #end(connection: Deno.Conn): void {
    if (this.#open.delete(connection)) connection.close();
  }

  async #serve(connection: Deno.Conn): Promise<void> {
    const left = Promise.withResolvers<void>();
    const request = { ...await readRequest(connection), left: left.promise };
    connection.read(new Uint8Array(1)).then(() => left.resolve(), () => left.resolve());
    const place = this.requests.push(request) - 1;
    const reply = await this.reply(request, place);
    if ("events" in reply) {
      await this.#stream(connection, reply);
      return;
    }
    if ("drop" in reply || "stall" in reply) {
      const isBegun = "stall" in reply || reply.drop === "within";
      const { status = 200 } = "stall" in reply ? reply : {};
      if (isBegun) await write(connection, `${head(status, 10_000)}{"choices": [`);
      if ("stall" in reply) await reply.stall;
      return;
    }
    const body = "status" in reply
      ? reply.body
      : "answer" in reply
      ? JSON.stringify(reply.answer)
      : completionOf(request, reply);
    const status = "status" in reply ? reply.status : 200;
    const headers = "status" in reply ? reply.headers : {};
    const bytes = Buffer.from(body);
    await write(connection, Buffer.concat([Buffer.from(head(status, bytes.byteLength, headers)), bytes]));
  }
}

function chunkOf(event: string | Uint8Array): Uint8Array {
  const bytes = Buffer.from(event);
  return Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

async function readRequest(connection: Deno.Conn): Promise<Omit<ModelRequest, "left">> {
  const latin = new TextDecoder("latin1");
  const chunks: Uint8Array[] = [];
  let top: string | null = null;
  let missing = Infinity;
  while (missing > 0) {
    const chunk = new Uint8Array(65_536);
    const read = await connection.read(chunk);
    if (read === null) throw new Error("The connection ended within a call");
    chunks.push(chunk.subarray(0, read));
    if (top !== null) {
      missing -= read;
      continue;
    }
    const text = latin.decode(Buffer.concat(chunks));
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) continue;
    top = text.slice(0, end + 4);
    missing = Number(headerOf(top, "content-length") ?? 0) - (text.length - top.length);
  }
  const [method = "", path = ""] = (top ?? "").split(" ");
  const text = Buffer.concat(chunks).subarray(top?.length).toString();
  const isForm = headerOf(top ?? "", "content-type")?.startsWith("multipart/") === true;
  const body = text === "" || isForm ? null : JSON.parse(text);
  return { method, path, authorization: headerOf(top ?? "", "authorization"), top: top ?? "", body, text };
}

export function headerOf(top: string, name: string): string | null {
  return new RegExp(`^${name}: *(.*?)\r?$`, "im").exec(top)?.[1] ?? null;
}

/** @param length null for an answer that ends with its connection */
function head(status: number, length: number | null, headers: Readonly<Record<string, string>> = {}): string {
  const all = {
    "content-type": "application/json",
    ...length === null ? {} : { "content-length": String(length) },
    connection: "close",
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} Status`, ...lines, "\r\n"].join("\r\n");
}

async function write(connection: Deno.Conn, text: string | Uint8Array): Promise<void> {
  let left: Uint8Array = Buffer.from(text);
  while (left.length > 0) left = left.subarray(await connection.write(left));
}

function completionOf(
  { body }: ModelRequest,
  { content, usage = USAGE }: { content: string | null; usage?: ModelUsage | null },
): string {
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 0,
    model: body.model,
    choices: [{ index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop" }],
    ...(usage === null ? {} : { usage: totalled(usage) }),
  });
}

/** An answer that fits the call, and its schema where it has one. */
function sampleReply({ path, body }: Pick<ModelRequest, "path" | "body">): ModelReply {
  if (path.endsWith("/models")) return { answer: MODELS };
  if (path.includes("/messages")) return messageReply(path, body);
  if (path.includes("/images/")) return { answer: imagesOf(body?.n ?? 1) };
  if (path.endsWith("/embeddings")) return { answer: embeddingsOf(body) };
  if (path.endsWith("/responses")) {
    return body.stream === true ? { events: responseEvents(SAMPLE) } : { answer: responseOf(SAMPLE) };
  }
  if (body.stream === true) return { events: chatEvents(body, SAMPLE) };
  const schema = body.response_format?.json_schema?.schema;
  return { content: schema === undefined ? SAMPLE.join("") : JSON.stringify(sampleOf(schema, "text")) };
}

/** The pieces of a sample of text. */
export const SAMPLE = ["A ", "sample ", "of ", "text"];

const MODELS = { object: "list", data: [{ id: "mini", object: "model", created: 0, owned_by: "test" }] };

const IMAGES_USAGE = { input_tokens: 50, output_tokens: 800, total_tokens: 850 };

/** An answer with images. */
export function imagesOf(n: number, usage: object | null = IMAGES_USAGE) {
  const data = Array.from({ length: n }, () => ({ b64_json: "aGVsbG8=" }));
  return { created: 0, data, ...usage === null ? {} : { usage } };
}

/** One vector for each input, as the encoding that was asked for has it. */
function embeddingsOf({ model, input, encoding_format }: ModelRequest["body"]) {
  const vector = [0.5, -0.25];
  const bytes = Buffer.from(new Float32Array(vector).buffer).toString("base64");
  const inputs = Array.isArray(input) && typeof input[0] !== "number" ? input : [input];
  const data = inputs.map((_, index) => ({
    object: "embedding",
    index,
    embedding: encoding_format === "base64" ? bytes : vector,
  }));
  return { object: "list", data, model, usage: { prompt_tokens: 8, total_tokens: 8 } };
}

/** An event of a stream. */
export function eventOf(value: unknown, name?: string): string {
  const data = `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
  return name === undefined ? data : `event: ${name}\n${data}`;
}

/** A chunk of a chat; a text is its content. */
export function chatChunk(delta: string | Readonly<Record<string, unknown>>, more = {}) {
  const content = typeof delta === "string" ? { content: delta } : delta;
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 0,
    model: "mini",
    choices: [{ index: 0, delta: content, finish_reason: null }],
    ...more,
  };
}

/** The events of a chat: its report comes only where it was asked for. */
export function* chatEvents(
  body: ModelRequest["body"],
  pieces: Iterable<string>,
  usage: ModelUsage = USAGE,
): Iterable<string> {
  const asked = body.stream_options?.include_usage === true;
  const none = asked ? { usage: null } : {};
  yield eventOf(chatChunk({ role: "assistant", content: "" }, none));
  for (const piece of pieces) yield eventOf(chatChunk(piece, none));
  yield eventOf(chatChunk({}, { ...none, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }));
  if (asked) yield eventOf(chatChunk({}, { choices: [], usage: totalled(usage) }));
  yield eventOf("[DONE]");
}

function totalled(usage: ModelUsage) {
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
}

const RESPONSE_USAGE = {
  input_tokens: 1000,
  input_tokens_details: { cached_tokens: 400 },
  output_tokens: 500,
  output_tokens_details: { reasoning_tokens: 100 },
  total_tokens: 1500,
};

/** A complete answer of responses. */
export function responseOf(pieces: readonly string[], more: Readonly<Record<string, unknown>> = {}) {
  const text = pieces.join("");
  return {
    id: "resp_1",
    object: "response",
    created_at: 0,
    status: "completed",
    model: "mini",
    output: [{
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    }],
    usage: RESPONSE_USAGE,
    ...more,
  };
}

/** The events of responses. */
export function* responseEvents(
  pieces: readonly string[],
  end = "response.completed",
  more: Readonly<Record<string, unknown>> = {},
): Iterable<string> {
  let number = 0;
  const event = (type: string, members: object) =>
    eventOf({ type, sequence_number: number++, ...members }, type);
  yield event("response.created", {
    response: responseOf([], { status: "in_progress", usage: null, output: [] }),
  });
  for (const delta of pieces) {
    yield event("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index: 0, delta });
  }
  yield event(end, { response: responseOf(pieces, more) });
}

type Schema = Record<string, unknown>;

function sampleOf(schema: Schema, name: string): unknown {
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        Object.entries(schema.properties as Record<string, Schema> ?? {})
          .map(([member, part]) => [member, sampleOf(part, member)]),
      );
    case "array":
      return [sampleOf(schema.items as Schema ?? {}, name)];
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    default:
      return `A sample ${name}`;
  }
}

if (import.meta.main) {
  const server = new ModelServer(Number(Deno.args[0] ?? 0));
  console.log(`OPENAI_BASE_URL=${server.baseUrl}`);
}
