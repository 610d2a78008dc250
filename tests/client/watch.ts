// A fetch to a service in this process that checks all calls: every answer must match the API reference, and a call may
// send only members that its endpoint knows. It also lists members that were never sent.

import assert from "node:assert/strict";
import type { z } from "zod";
import { ENDPOINTS } from "../../routes/app.ts";
import { assertDocumented } from "../support/documented.ts";
import type { TestService } from "../support/test_service.ts";
import { fetchOf } from "./support.ts";

/** An endpoint with what was seen of it. */
interface Seen {
  readonly name: string;
  readonly method: string;
  readonly pattern: RegExp;
  readonly members: readonly string[];
  readonly sent: Set<string>;
  isCalled: boolean;
}

/** Looks at the calls of clients. */
export class Watch {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly #endpoints: readonly Seen[] = ENDPOINTS.map(({ method, path, input }) => ({
    name: `${method} ${path}`,
    method,
    pattern: new RegExp(`^/api${path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`),
    members: Object.keys((input as unknown as z.ZodObject).shape),
    sent: new Set<string>(),
    isCalled: false,
  }));

  constructor(service: Pick<TestService, "http">) {
    const send = fetchOf(service);
    this.fetch = async (url, init) => {
      const { pathname, search } = new URL(url);
      const { method = "GET", body } = init;
      this.#keep(method, pathname, search, body as string | undefined);
      const response = await send(url, init);
      if (response.headers.get("content-type") === "text/event-stream") return response;
      assertDocumented(method, pathname, response.status, await response.clone().json());
      return response;
    };
  }

  /** Endpoints never called, and members never sent, as "POST /v1/reserve: ttlSeconds". */
  unsent(): string[] {
    return this.#endpoints.flatMap(({ name, members, sent, isCalled }) =>
      isCalled ? members.filter((member) => !sent.has(member)).map((member) => `${name}: ${member}`) : [name]
    );
  }

  #keep(method: string, path: string, query: string, body: string | undefined): void {
    if (path === "/api/v1/export-download") return;
    const seen = this.#endpoints.find((one) => one.method === method && one.pattern.test(path));
    assert.ok(seen !== undefined, `Nothing answers ${method} ${path}`);
    seen.isCalled = true;
    const members = [
      ...Object.keys(seen.pattern.exec(path)?.groups ?? {}),
      ...new URLSearchParams(query).keys(),
      ...Object.keys(body === undefined ? {} : JSON.parse(body)),
    ];
    for (const member of members) {
      assert.ok(seen.members.includes(member), `${member} is unknown to ${seen.name}`);
      seen.sent.add(member);
    }
  }
}
