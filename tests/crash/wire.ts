// One HTTP/1.1 connection by hand. A test that kills servers must know the exact outcome of a call: answered in
// full, never sent (no listener), or sent and then cut off. `fetch` hides the difference and may send again by
// itself.

const TIMEOUT_MS = 45_000;

/** An answer that came in full. */
export interface WireResponse {
  readonly status: number;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  readonly body: any;
}

/** The outcome of a call: `unsent` had no effect, `cut` and `silent` may have had one. */
export type Outcome =
  | { readonly kind: "answer"; readonly answer: WireResponse }
  | { readonly kind: "unsent" }
  | { readonly kind: "cut"; readonly received: number; readonly sentAt: number }
  | { readonly kind: "silent" };

export interface WireCall {
  readonly method: string;
  readonly path: string;
  readonly bearer?: string | undefined;
  readonly body?: unknown;
  readonly idempotencyKey?: string | null | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A kept-alive connection that is made anew after each break. */
export class Wire {
  #origin: string;
  #connection: Deno.TcpConn | null = null;

  constructor(origin: string) {
    this.#origin = origin;
  }

  get origin(): string {
    return this.#origin;
  }

  /** Sends what comes next to another process, if it is another one. */
  moveTo(origin: string): void {
    if (origin === this.#origin) return;
    this.close();
    this.#origin = origin;
  }

  async call(call: WireCall, timeoutMs = TIMEOUT_MS): Promise<Outcome> {
    try {
      this.#connection ??= await this.#connect();
    } catch {
      return { kind: "unsent" };
    }
    const connection = this.#connection;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.close();
    }, timeoutMs);
    const reader = new ResponseReader(connection);
    const sentAt = performance.now();
    try {
      await writeAll(connection, encode(call));
      const answer = await reader.read();
      if (answer.headers.get("connection") === "close") this.close();
      return { kind: "answer", answer };
    } catch {
      this.close();
      return isLate ? { kind: "silent" } : { kind: "cut", received: reader.received, sentAt };
    } finally {
      clearTimeout(timer);
    }
  }

  #connect(): Promise<Deno.TcpConn> {
    const { hostname, port } = new URL(this.#origin);
    return Deno.connect({ hostname, port: Number(port) });
  }

  close(): void {
    const connection = this.#connection;
    this.#connection = null;
    try {
      connection?.close();
    } catch {
      // It was closed already.
    }
  }
}

/** One call on a connection of its own. */
export async function once(origin: string, call: WireCall, timeoutMs?: number): Promise<Outcome> {
  const wire = new Wire(origin);
  try {
    return await wire.call({ ...call, headers: { ...call.headers, connection: "close" } }, timeoutMs);
  } finally {
    wire.close();
  }
}

/** The answer of an outcome, which must be one. */
export function answerOf(outcome: Outcome): WireResponse {
  if (outcome.kind !== "answer") throw new Error(`The call was not answered: ${JSON.stringify(outcome)}`);
  return outcome.answer;
}

function encode({ method, path, bearer, body, idempotencyKey, headers = {} }: WireCall): Uint8Array {
  const payload = body === undefined ? null : new TextEncoder().encode(JSON.stringify(body));
  const lines = [`${method} ${path} HTTP/1.1`, "host: holdfast.test"];
  if (bearer !== undefined) lines.push(`authorization: Bearer ${bearer}`);
  if (idempotencyKey != null) lines.push(`idempotency-key: ${idempotencyKey}`);
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (payload !== null) {
    lines.push("content-type: application/json", `content-length: ${payload.byteLength}`);
  }
  const head = new TextEncoder().encode(lines.join("\r\n") + "\r\n\r\n");
  if (payload === null) return head;
  const all = new Uint8Array(head.length + payload.length);
  all.set(head);
  all.set(payload, head.length);
  return all;
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

/** Reads one response that declares its length. */
class ResponseReader {
  received = 0;
  readonly #connection: Deno.TcpConn;
  #buffer = new Uint8Array(64 * 1024);

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  async read(): Promise<WireResponse> {
    while (true) {
      const text = new TextDecoder("latin1").decode(this.#buffer.subarray(0, this.received));
      const headEnd = text.indexOf("\r\n\r\n");
      if (headEnd >= 0) return await this.#readBody(text.slice(0, headEnd), headEnd + 4);
      await this.#more();
    }
  }

  async #readBody(head: string, start: number): Promise<WireResponse> {
    const [statusLine, ...lines] = head.split("\r\n");
    const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
    const length = Number(headers.get("content-length") ?? Number.NaN);
    if (Number.isNaN(length)) throw new Error(`A response came without content-length: ${head}`);
    while (this.received < start + length) await this.#more();
    const body = new TextDecoder().decode(this.#buffer.subarray(start, start + length));
    const isJson = headers.get("content-type")?.startsWith("application/json") ?? false;
    return { status: Number(statusLine?.split(" ")[1]), headers, body: isJson ? JSON.parse(body) : body };
  }

  async #more(): Promise<void> {
    if (this.received === this.#buffer.length) {
      const larger = new Uint8Array(this.#buffer.length * 2);
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
    const got = await this.#connection.read(this.#buffer.subarray(this.received));
    if (got === null) throw new Error("The connection ended within a response");
    this.received += got;
  }
}
