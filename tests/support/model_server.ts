// An OpenAI-compatible model server on a free port of this machine: it answers as a test says, well or wrongly, late,
// with an error, or not at all. It speaks HTTP over bare connections, since a server library would not let go of one
// half-way. Run by itself it answers every call with a sample of the schema that came with it:
//
//   deno run --allow-net=127.0.0.1 tests/support/model_server.ts 8123

/** A call as it came. */
export interface ModelRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  readonly body: any;
}

/** What the server does with a call. */
export type ModelReply =
  | { readonly content: string | null; readonly usage?: ModelUsage | null }
  | { readonly status: number; readonly body: string }
  /** Ends the connection before an answer, or within one. */
  | { readonly drop: "before" | "within" }
  /** Begins an answer and waits before it ends the connection. */
  | { readonly stall: Promise<void> };

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

  #end(connection: Deno.Conn): void {
    if (this.#open.delete(connection)) connection.close();
  }

  async #serve(connection: Deno.Conn): Promise<void> {
    const request = await readRequest(connection);
    const place = this.requests.push(request) - 1;
    const reply = await this.reply(request, place);
    if ("drop" in reply || "stall" in reply) {
      const isBegun = "stall" in reply || reply.drop === "within";
      if (isBegun) await write(connection, `${head(200, 10_000)}{"choices": [`);
      if ("stall" in reply) await reply.stall;
      return;
    }
    const body = "status" in reply ? reply.body : completionOf(request, reply);
    const status = "status" in reply ? reply.status : 200;
    await write(connection, head(status, new TextEncoder().encode(body).byteLength) + body);
  }
}

async function readRequest(connection: Deno.Conn): Promise<ModelRequest> {
  const decoder = new TextDecoder("latin1");
  let bytes = new Uint8Array();
  let bodyAt = -1;
  let length = 0;
  while (bodyAt < 0 || bytes.length < bodyAt + length) {
    const chunk = new Uint8Array(65_536);
    const read = await connection.read(chunk);
    if (read === null) throw new Error("The connection ended within a call");
    const longer = new Uint8Array(bytes.length + read);
    longer.set(bytes);
    longer.set(chunk.subarray(0, read), bytes.length);
    bytes = longer;
    if (bodyAt >= 0) continue;
    const end = decoder.decode(bytes).indexOf("\r\n\r\n");
    if (end < 0) continue;
    bodyAt = end + 4;
    length = Number(headerOf(decoder.decode(bytes.subarray(0, end)), "content-length") ?? 0);
  }
  const top = decoder.decode(bytes.subarray(0, bodyAt));
  const [method = "", path = ""] = top.split(" ");
  const body = JSON.parse(new TextDecoder().decode(bytes.subarray(bodyAt, bodyAt + length)));
  return { method, path, authorization: headerOf(top, "authorization"), body };
}

function headerOf(top: string, name: string): string | null {
  return new RegExp(`^${name}: *(.*?)\r?$`, "im").exec(top)?.[1] ?? null;
}

function head(status: number, length: number): string {
  return [
    `HTTP/1.1 ${status} Status`,
    "content-type: application/json",
    `content-length: ${length}`,
    "connection: close",
    "\r\n",
  ].join("\r\n");
}

async function write(connection: Deno.Conn, text: string): Promise<void> {
  let left = new TextEncoder().encode(text);
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
    ...(usage === null
      ? {}
      : { usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens } }),
  });
}

/** An answer that fits the schema of the call. */
export function sampleReply({ body }: ModelRequest): ModelReply {
  return { content: JSON.stringify(sampleOf(body.response_format.json_schema.schema, "text")) };
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
