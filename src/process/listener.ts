// The port that the program listens on. A process without free file descriptors loses its server: the runtime's accept loop
// ends, so a caller who opens enough connections would end the service. Such a server is therefore shut down, which
// closes its idle connections and lets its calls end, and the port is opened again.

import { log, messageOf } from "./log.ts";
import { ConfigError } from "./settings.ts";

const AGAIN_MS = 100;

/** The address to listen on. */
export interface ListenAddress {
  readonly host: string;
  /** 0 for a free port. */
  readonly port: number;
  /** Whether other processes of this machine may listen on it too: the system then distributes connections. */
  readonly sharesPort: boolean;
  /** The setting that has host and port; left out: HOLDFAST_HOST and PORT. */
  readonly setting?: string;
}

/**
 * Checks that an address is free, before a store is created, which takes seconds. A shared address is not tried: the system
 * would give this listener connections that it does not answer.
 *
 * @throws ConfigError that names the setting
 */
export function checkAddress(address: ListenAddress): void {
  const { host: hostname, port, sharesPort } = address;
  if (!sharesPort) onAddress(address, () => Deno.listen({ hostname, port }).close());
}

/**
 * Answers requests on an address.
 *
 * @throws ConfigError that names the setting
 */
export function listen(address: ListenAddress, handler: Deno.ServeHandler): Listener {
  return onAddress(address, () => new Listener(address, handler));
}

/** Turns a failure to listen into an error that names the setting. */
function onAddress<T>({ host, port, sharesPort, setting }: ListenAddress, work: () => T): T {
  const ofPort = setting ?? "PORT";
  try {
    return work();
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) {
      const advice = sharesPort
        ? `start every process on it with HOLDFAST_SHARE_PORT=true and as one user, or set another ${ofPort}`
        : `stop that one or set another ${ofPort}`;
      throw new ConfigError(
        `Cannot start: ${ofPort} ${port} on ${host} is in use by another process; ${advice}`,
      );
    }
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new ConfigError(
        `Cannot start: ${ofPort} ${port} may not be used by this user: ${messageOf(error)}`,
      );
    }
    throw new ConfigError(`Cannot start: ${setting ?? "HOLDFAST_HOST"} ${host}: ${messageOf(error)}`);
  }
}

/** Answers requests on a port until it is shut down. */
export class Listener {
  readonly #options: Deno.ServeTcpOptions;
  readonly #handler: Deno.ServeHandler;
  #server: Deno.HttpServer<Deno.NetAddr>;
  #isShutDown = false;
  /** Whether each answer is the last one on its connection. */
  #isEnding = false;
  /** Pending shutdowns of servers that were lost while calls were in flight. */
  readonly #ending = new Set<Promise<void>>();

  /** @throws when the address is not free */
  constructor(address: ListenAddress, handler: Deno.ServeHandler) {
    this.#handler = (request, info) =>
      this.#isEnding ? closing(handler(request, info)) : handler(request, info);
    const { host: hostname, port, sharesPort: reusePort } = address;
    const options = { hostname, port, reusePort, onListen: () => {} };
    this.#server = this.#serve(options);
    this.#options = { ...options, port: this.#server.addr.port };
  }

  get port(): number {
    return this.#server.addr.port;
  }

  /**
   * Makes each answer the last one on its connection. A shutdown closes idle connections, even if a call is arriving on
   * them; a caller that needs another connection may get one to another process.
   */
  endConnections(): void {
    this.#isEnding = true;
  }

  /** Accepts no new calls; resolves when those in flight have ended. */
  async shutdown(): Promise<void> {
    this.#isShutDown = true;
    await Promise.all([this.#server.shutdown(), ...this.#ending]);
  }

  #serve(options: Deno.ServeTcpOptions): Deno.HttpServer<Deno.NetAddr> {
    const server = Deno.serve(options, this.#handler);
    server.finished.catch((error) => {
      log("warn", "The port accepts no more connections; listening again", { error: messageOf(error) });
      const end = server.shutdown().catch(() => {}).finally(() => this.#ending.delete(end));
      this.#ending.add(end);
      this.#again();
    });
    return server;
  }

  #again(): void {
    if (this.#isShutDown) return;
    try {
      this.#server = this.#serve(this.#options);
    } catch (error) {
      log("warn", "Cannot listen on the port", { error: messageOf(error) });
      setTimeout(() => this.#again(), AGAIN_MS);
    }
  }
}

async function closing(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  response.headers.set("connection", "close");
  return response;
}
