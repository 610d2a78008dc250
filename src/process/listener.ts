// The port that the program listens on. When the process may open no more files, the runtime's accept loop ends and with
// it the server: whoever opens enough connections would end the service. So a server whose loop ended is shut down,
// which closes its idle connections and lets its calls end, and the port is listened on again.

import { log, messageOf } from "./log.ts";

const AGAIN_MS = 100;

/** Answers requests on a port until it is shut down. */
export class Listener {
  readonly #options: Deno.ServeTcpOptions;
  readonly #handler: Deno.ServeHandler;
  #server: Deno.HttpServer<Deno.NetAddr>;
  #isShutDown = false;
  /** Shutdowns of servers whose loop ended, with calls that still go on. */
  readonly #ending = new Set<Promise<void>>();

  /** @throws where the port or the host cannot be had */
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
      log("warn", "The port takes no connections: listening again", { error: messageOf(error) });
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
      log("warn", "The port cannot be listened on", { error: messageOf(error) });
      setTimeout(() => this.#again(), AGAIN_MS);
    }
  }
}
