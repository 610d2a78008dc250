// Connections over TCP. A listener lives as long as its hub: a refused connection means to other nodes that this process
// is gone, so only the end of the hub may close the port.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { type Connection, ConnectionRefused, type Network } from "./network.ts";
import { rest } from "../process/rest.ts";

/** Pause after accepting a connection failed, as at the limit of open files. */
const ACCEPT_AGAIN_MS = 50;

/**
 * TCP as a network.
 *
 * @param bind "host:port" to listen on, port 0 for a free port
 * @param publicHost the host of the address given to others; null for that of `bind`
 * @throws RangeError if `bind` is not a "host:port"
 */
export function tcpNetwork(bind: string, publicHost: string | null = null): Network {
  const { hostname, port } = addressOf(bind);
  return {
    // deno-lint-ignore require-await -- errors must be rejections
    async listen(onConnection) {
      const listener = Deno.listen({ hostname, port });
      void accept(listener, onConnection);
      return {
        address: addressText(publicHost ?? hostname, listener.addr.port),
        close: () => quietly(() => listener.close()),
      };
    },
    connect(address) {
      if (!isLoopback(addressOf(address).hostname) || isLoopback(publicHost ?? hostname)) {
        return connect(address);
      }
      // A loopback address of another machine: a refusal on this one would prove nothing about that process.
      return Promise.reject(new Error(`${address} is a loopback address of another machine`));
    },
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

/** Connects to an address, within the time of a hello. */
async function connect(address: string): Promise<Connection> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), CHANNEL_LIMITS.helloMs);
  try {
    return new TcpConnection(await Deno.connect({ ...addressOf(address), signal: giveUp.signal }));
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused) throw new ConnectionRefused(`Refused: ${address}`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Accepts connections until the listener is closed; other errors of the system do not end the listening. */
async function accept(
  listener: Deno.TcpListener,
  onConnection: (connection: Connection) => void,
): Promise<void> {
  for (;;) {
    try {
      onConnection(new TcpConnection(await listener.accept()));
    } catch (error) {
      if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) return;
      await rest(ACCEPT_AGAIN_MS);
    }
  }
}

/** One TCP connection. */
class TcpConnection implements Connection {
  readonly #conn: Deno.TcpConn;
  /** The read buffer; small until a peer fills it, because many connections never send anything. */
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

/** Splits "host:port"; an IPv6 host has brackets. */
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

/** Closes something that may be closed already. */
function quietly(close: () => void): void {
  try {
    close();
  } catch {
    // Already closed.
  }
}
