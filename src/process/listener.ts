// The port that the program listens on. A process that may open no more files loses its server: the runtime's accept
// loop ends, so that whoever opens enough connections would end the service. We therefore shut such a server down,
// which closes its idle connections and lets its calls end, and listen on the port again.

import { log, messageOf } from "./log.ts";
import { ConfigError } from "./settings.ts";

const AGAIN_MS = 100;

/**
 * Checks that an address can be listened on. Making a store takes seconds, so this is found out before.
 *
 * @throws ConfigError that names the setting
 */
export function checkAddress(hostname: string, port: number): void {
  onAddress(hostname, port, () => Deno.listen({ hostname, port }).close());
}

/**
 * Answers requests on an address.
 *
 * @throws ConfigError that names the setting
 */
export function listen(hostname: string, port: number, handler: Deno.ServeHandler): Listener {
  return onAddress(hostname, port, () => new Listener(hostname, port, handler));
}

/** An address that cannot be listened on is a bad setting. */
function onAddress<T>(host: string, port: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) {
      throw new ConfigError(
        `Cannot start: PORT ${port} on ${host} is in use by another process; stop that one or set another PORT`,
      );
    }
    if (error instanceof Deno.errors.PermissionDenied) {
      throw new ConfigError(`Cannot start: PORT ${port} may not be used by this user: ${messageOf(error)}`);
    }
    throw new ConfigError(`Cannot start: HOLDFAST_HOST ${host}: ${messageOf(error)}`);
  }
}

/** Answers requests on a port until it is shut down. */
export class Listener {
  readonly #options: Deno.ServeTcpOptions;
  readonly #handler: Deno.ServeHandler;
  #server: Deno.HttpServer<Deno.NetAddr>;
  #isShutDown = false;
  /** Shutdowns under way of servers that were lost while calls were in flight. */
  readonly #ending = new Set<Promise<void>>();

  /** @throws when the address cannot be listened on */
  constructor(hostname: string, port: number, handler: Deno.ServeHandler) {
    this.#handler = handler;
    this.#server = this.#serve({ hostname, port, onListen: () => {} });
    this.#options = { hostname, port: this.#server.addr.port, onListen: () => {} };
  }

  get port(): number {
    return this.#server.addr.port;
  }

  /** Takes no new calls; resolves when those in flight have ended. */
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
