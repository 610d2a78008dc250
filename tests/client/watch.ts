// A fetch to a service in this process that looks at what passes: every success is parsed by the strict schema of its
// operation, and what the client sent is kept by operation, so that a test can say what was never sent.

import assert from "node:assert/strict";
import type { z } from "zod";
import { ENDPOINTS } from "../../routes/app.ts";
import type { Endpoint } from "../../routes/endpoint.ts";
import type { TestService } from "../support/test_service.ts";
import { ANSWERS, EXPORT_DOCUMENT } from "./answers.ts";
import { fetchOf } from "./support.ts";

/** What was seen of the service's operations. */
export class Watch {
  /** Members sent, by operation. */
  readonly sent = new Map<string, Set<string>>();
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;

  constructor(service: Pick<TestService, "http">) {
    const send = fetchOf(service);
    this.fetch = async (url, init) => {
      this.#keep(url, init);
      const response = await send(url, init);
      if (response.ok) await proveAnswer(url, init.method ?? "GET", response.clone());
      return response;
    };
  }

  /** Operations never called, and members never sent, as "POST /v1/reserve: ttlSeconds". */
  unsent(): string[] {
    return ENDPOINTS.flatMap((operation) => {
      const name = nameOf(operation);
      const sent = this.sent.get(name);
      if (sent === undefined) return [name];
      return membersOf(operation).filter((member) => !sent.has(member)).map((member) => `${name}: ${member}`);
    });
  }

  #keep(url: string, { method = "GET", body }: RequestInit): void {
    const operation = operationAt(method, url);
    if (operation === null) return;
    const members = Object.keys(body == null ? {} : JSON.parse(body as string));
    members.push(...new URL(url).searchParams.keys(), ...pathMembersOf(operation));
    const known = membersOf(operation);
    assert.deepEqual(
      members.filter((member) => !known.includes(member)),
      [],
      `unknown to ${nameOf(operation)}`,
    );
    const sent = this.sent.get(nameOf(operation)) ?? new Set<string>();
    for (const member of members) sent.add(member);
    this.sent.set(nameOf(operation), sent);
  }
}

async function proveAnswer(url: string, method: string, response: Response): Promise<void> {
  const operation = operationAt(method, url);
  const body = await response.json();
  const schema: z.ZodType | undefined = operation === null
    ? EXPORT_DOCUMENT
    : ANSWERS[nameOf(operation) as keyof typeof ANSWERS];
  assert.ok(schema !== undefined, `${method} ${url} has no schema`);
  const parsed = schema.safeParse(operation === null ? body : body.data);
  assert.ok(parsed.success, `${method} ${url} answered ${JSON.stringify(body)}: ${parsed.error?.message}`);
}

/** The operation at an address; null for the export's document, which is none. */
function operationAt(method: string, url: string): Endpoint<unknown> | null {
  const { pathname } = new URL(url);
  if (pathname === "/api/v1/export-download") return null;
  const places = pathname.split("/");
  const found = ENDPOINTS.find((operation) => {
    const pattern = `/api${operation.path}`.split("/");
    return operation.method === method && pattern.length === places.length &&
      pattern.every((part, index) => part.startsWith(":") || part === places[index]);
  });
  assert.ok(found !== undefined, `Nothing answers ${method} ${pathname}`);
  return found;
}

function nameOf({ method, path }: Endpoint<unknown>): string {
  return `${method} ${path}`;
}

function pathMembersOf({ path }: Endpoint<unknown>): string[] {
  return path.split("/").filter((part) => part.startsWith(":")).map((part) => part.slice(1));
}

function membersOf({ input }: Endpoint<unknown>): string[] {
  return Object.keys((input as unknown as z.ZodObject).shape);
}
