// The cable between the program and its database: a relay that a test can cut, which breaks connections at once and
// in the middle of anything, without the message that a server sends when it ends a session; or leave cut. Before a
// cut it can drop the data of one side, so that an answer or a request is lost.

import { pause } from "./program.ts";

/** Which way bytes go: `query` to the server, `answer` back. */
type Direction = "query" | "answer";

/** A relay in front of a server. */
export class Cable implements AsyncDisposable {
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  readonly #target: { hostname: string; port: number };
  readonly #open = new Set<Deno.TcpConn>();
  readonly #running: Promise<unknown>;
  #isCut = false;
  #swallowed: Direction | null = null;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#target = { hostname, port: Number(port || 5432) };
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#listener.addr.port;
    this.#running = this.#serve();
  }

  /** The URL of a database through the cable. */
  through(url: string): string {
    const relayed = new URL(url);
    relayed.hostname = "127.0.0.1";
    relayed.port = String(this.port);
    return relayed.href;
  }

  /** Whether it carries anything. */
  get isUsed(): boolean {
    return this.#open.size > 0;
  }

  /** Breaks every connection. */
  cut(): void {
    for (const connection of this.#open) close(connection);
    this.#open.clear();
  }

  /** Carries nothing in one direction for a while, then breaks every connection. */
  async swallow(direction: Direction, ms: number): Promise<void> {
    this.#swallowed = direction;
    await pause(ms);
    this.cut();
    this.#swallowed = null;
  }

  /** Breaks every connection, and new ones at once, for a while. */
  async cutFor(ms: number): Promise<void> {
    this.#isCut = true;
    this.cut();
    await pause(ms);
    this.#isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isCut = true;
    this.#listener.close();
    this.cut();
    await this.#running;
  }

  async #serve(): Promise<void> {
    const relays: Promise<void>[] = [];
    try {
      for await (const connection of this.#listener) {
        if (this.#isCut) close(connection);
        else relays.push(this.#relay(connection));
      }
    } catch {
      // The listener was closed.
    }
    await Promise.all(relays);
  }

  async #relay(near: Deno.TcpConn): Promise<void> {
    let far: Deno.TcpConn;
    try {
      far = await Deno.connect(this.#target);
    } catch {
      return close(near);
    }
    this.#open.add(near).add(far);
    await Promise.all([this.#carry(near, far, "query"), this.#carry(far, near, "answer")]);
    this.#open.delete(near);
    this.#open.delete(far);
  }

  /** Carries bytes until either side ends, then ends both. The bytes that begin a silence are torn in two. */
  async #carry(from: Deno.TcpConn, to: Deno.TcpConn, direction: Direction): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    let isSilent = false;
    try {
      for (let got = await from.read(buffer); got !== null; got = await from.read(buffer)) {
        if (isSilent) continue;
        isSilent = this.#swallowed === direction;
        const end = isSilent ? Math.floor(got * Math.random()) : got;
        for (let sent = 0; sent < end;) sent += await to.write(buffer.subarray(sent, end));
      }
    } catch {
      // It was cut.
    }
    close(from);
    close(to);
  }
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It was closed already.
  }
}
