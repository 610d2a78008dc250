// The base of the groups of calls, such as `client.credits`.

import type { Access, CallOptions, Transport, WireCall } from "./transport.ts";

/** Calls of a client that belong together. */
export abstract class CallGroup {
  protected readonly transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.transport = transport;
  }

  /** Sends a call. `input` is the query of a GET or a DELETE, and the body of a POST or a PUT. */
  protected send<Answer>(
    method: WireCall["method"],
    path: string,
    access: Access,
    call: CallOptions | undefined,
    input?: object,
  ): Promise<Answer> {
    const place = method === "GET" || method === "DELETE" ? "query" : "body";
    return this.transport.send({ method, path, access, [place]: input }, call);
  }
}
