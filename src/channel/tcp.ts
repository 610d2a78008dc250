// Lines over TCP. A listener here lives as long as its hub: a refused connection tells other members that this process
// is gone, so nothing but the hub's end may close the port.

import { CHANNEL_LIMITS } from "../process/limits.ts";
import { type Line, LineRefused, type Network } from "./line.ts";

/** Pause after the system could not hand over a connection, as when the process may open no more files. */
const ACCEPT_AGAIN_MS = 50;

/**
 * The network of production.
 *
 * @param bind "host:port" to listen on, port 0 for a free one
 * @param told the host told to others, where it differs
 * @throws RangeError for a text that is no "host:port"
 */
export function tcpNetwork(bind: string, told: string | null = null): Network {
  const { hostname, port } = addressOf(bind);
  return {
    // deno-lint-ignore require-await -- what cannot be listened on is a rejection
    async listen(onLine) {
      const listener = Deno.listen({ hostname, port });
      void accept(listener, onLine);
      return {
        address: addressText(told ?? hostname, listener.addr.port),
        close: () => quietly(() => listener.close()),
      };
    },
    connect(address) {
      if (!isLoopback(addressOf(address).hostname) || isLoopback(told ?? hostname)) return connect(address);
      // On this machine nobody may listen there, and that would say nothing of the process that told it.
      return Promise.reject(new Error(`${address} is an address within another machine`));
    },
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

/** A line to an address; the system gives up after the time of a hello. */
async function connect(address: string): Promise<Line> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), CHANNEL_LIMITS.helloMs);
  try {
    return new TcpLine(await Deno.connect({ ...addressOf(address), signal: giveUp.signal }));
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) throw new LineRefused(`Refused: ${address}`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Hands over connections until the listener is closed; a fault of the system passes and never ends the listening. */
async function accept(listener: Deno.TcpListener, onLine: (line: Line) => void): Promise<void> {
  for (;;) {
    try {
      onLine(new TcpLine(await listener.accept()));
    } catch (error) {
      if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) return;
      await new Promise((resolve) => setTimeout(resolve, ACCEPT_AGAIN_MS));
    }
  }
}

/** One TCP connection. */
class TcpLine implements Line {
  readonly #conn: Deno.TcpConn;
  /** Small until a peer fills it: many connections never say anything. */
  #bytes: Uint8Array<ArrayBuffer> | null = null;

  constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
    conn.setNoDelay(true);
  }

  async read(): Promise<Uint8Array | null> {
    const bytes = this.#bytes ??= new Uint8Array(CHANNEL_LIMITS.firstReadBytes);
    const length = await this.#conn.read(bytes);
    if (length === null) return null;
    if (length === bytes.length && length < CHANNEL_LIMITS.readBytes) {
      this.#bytes = new Uint8Array(CHANNEL_LIMITS.readBytes);
    }
    return bytes.subarray(0, length);
  }

  async write(bytes: Uint8Array): Promise<void> {
    let written = await this.#conn.write(bytes);
    while (written < bytes.length) written += await this.#conn.write(bytes.subarray(written));
  }

  close(): void {
    quietly(() => this.#conn.close());
  }
}

/** The parts of "host:port"; an IPv6 host stands in brackets. */
function addressOf(text: string): { hostname: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const hostname = bracketed ?? plain;
  const port = Number(digits);
  if (hostname === undefined || !(port <= 65_535)) throw new RangeError(`Not a "host:port": ${text}`);
  return { hostname, port };
}

function addressText(hostname: string, port: number): string {
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/** Closes what may be closed already. */
function quietly(close: () => void): void {
  try {
    close();
  } catch {
    // It is closed.
  }
}
