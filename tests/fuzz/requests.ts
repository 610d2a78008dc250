// Requests to every route that is mounted, as data: valid ones, ones with a place changed, and wild ones. A request
// is all text, so that it can be printed, sent again, and sent by a socket.

import type { z } from "zod";
import { WHAT_IF } from "../../routes/calls/what_if.ts";
import { ADMIN_ENDPOINTS } from "../../routes/calls/admin.ts";
import { CATALOG_ENDPOINTS } from "../../routes/calls/catalogs.ts";
import { ENDPOINTS } from "../../routes/app.ts";
import { SERVICE } from "../../routes/calls/service.ts";
import { STRIPE } from "../../routes/calls/stripe.ts";
import { WEBHOOKS } from "../../routes/calls/webhooks.ts";
import { catalogSchema } from "../../src/tenant/catalog/schema.ts";
import type { Random } from "../model/random.ts";
import { CATALOG, type FuzzScene } from "./scene.ts";
import { Values } from "./values.ts";

/** A mounted route; without a schema its bodies are wild. */
export interface Route {
  readonly method: string;
  /** The mounted path, with `:name` for path members. */
  readonly path: string;
  readonly schema: z.ZodType | null;
}

/** A request as text. */
export interface FuzzRequest {
  readonly route: Route;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** How far a request keeps to its schema. */
type Manner = "valid" | "changed" | "wild";

/**
 * Every mounted route of a service, so that a new one is fuzzed without a change here. The one that makes roles of the
 * database server is left out: these would outlive the test.
 */
export function routesOf({ service }: Pick<FuzzScene, "service">): Route[] {
  return service.http.routes.filter(({ method, path }) => !(method === "POST" && path.endsWith("/readers")))
    .map(({ method, path }) => ({ method, path, schema: schemaOf(method, path) }));
}

function schemaOf(method: string, path: string): z.ZodType | null {
  const operation = ENDPOINTS.find((each) => each.method === method && `/api${each.path}` === path);
  if (operation !== undefined) return operation.hasNoBody === true ? null : operation.input;
  if (method === "PUT" && path.endsWith("/catalog")) return catalogSchema;
  const admin = [...ADMIN_ENDPOINTS, ...CATALOG_ENDPOINTS, ...SERVICE, ...WEBHOOKS, ...STRIPE, ...WHAT_IF]
    .find((each) => each.method === method && `/api${each.path}` === path);
  return admin?.hasNoBody === true ? null : admin?.input ?? null;
}

/** Calls that a tight user takes part in. */
const METERING = /\/(reserve|track|can-use|explain|usage)$/;
/** Calls that make many calls. */
const BATCH = /\/v1\/(track\/)?batch$/;
const SLOW = /\/(sweep|move-history|delete-person)$/;
const QUERIED = new Set(["GET", "HEAD", "OPTIONS"]);

/** Makes requests by chance. */
export class Requests {
  readonly #random: Random;
  readonly #scene: FuzzScene;
  readonly #values: Values;
  readonly #routes: readonly Route[];

  constructor(random: Random, scene: FuzzScene) {
    this.#random = random;
    this.#scene = scene;
    this.#values = new Values(random, scene.pools);
    this.#routes = routesOf(scene);
  }

  /** A request to any route. */
  next(): FuzzRequest {
    let route = this.#random.pick(this.#routes);
    // These work through the whole database, so that a few of them would take most of the time.
    if (SLOW.test(route.path) && this.#random.chance(0.9)) route = this.#random.pick(this.#routes);
    return this.to(route, this.#random.weighted({ valid: 6, changed: 3, wild: 1 }));
  }

  /** A request to a route. */
  to(route: Route, manner: Manner): FuzzRequest {
    const input = this.#input(route, manner);
    const members = typeof input === "object" && input !== null ? input as Record<string, unknown> : {};
    const path = route.path.replaceAll(/:(\w+)/g, (_, name) => this.#pathMember(route, name, manner));
    const isQueried = QUERIED.has(route.method) || (route.method === "DELETE" && this.#random.chance(0.5));
    const [query, body] = isQueried ? [queryOf(members), null] : ["", JSON.stringify(input) ?? "null"];
    const headers = this.#headers(route, manner);
    return { route, method: route.method, path: path + this.#oddQuery(query), headers, body };
  }

  #input(route: Route, manner: Manner): unknown {
    const values = this.#values;
    if (route.schema === null || (manner === "wild" && this.#random.chance(0.3))) return values.wild();
    const isCatalog = route.path.endsWith("/catalog");
    if (isCatalog) return this.#random.chance(0.7) ? values.mutated(CATALOG) : values.valid(route.schema);
    const input = values.valid(route.schema) as Record<string, unknown>;
    if (BATCH.test(route.path)) this.#fill(input, manner);
    if ("userId" in input && METERING.test(route.path)) input.userId = values.named("meteredUserId");
    // A run of another user is not found, and hardly any by chance is this one's.
    if ("runId" in input && "userId" in input && this.#random.chance(0.7)) delete input.runId;
    if (this.#random.chance(0.05)) Object.assign(input, this.#foreignMember(input));
    if (manner === "wild") {
      for (const name of Object.keys(input)) if (this.#random.chance(0.6)) input[name] = values.wild();
    }
    return manner === "changed" ? values.mutated(input) : input;
  }

  /** Puts calls into a batch, or events: the schema takes anything there. */
  #fill(input: Record<string, unknown>, manner: Manner): void {
    const random = this.#random;
    const elements = (names: readonly string[]) =>
      Array.from({ length: random.whole(1, 8) }, () => {
        const call = random.pick(names);
        const route = this.#routes.find(({ path }) => path === `/api/v1/${call}`) as Route;
        const body = this.#input(route, random.chance(0.8) ? "valid" : manner);
        const key = random.chance(0.3) ? { idempotencyKey: `key_${random.whole(1, 40)}` } : {};
        return typeof body === "object" && !Array.isArray(body) ? { ...body, ...key, call } : body;
      });
    if ("calls" in input) input.calls = elements(["reserve", "commit", "release", "can-use", "track"]);
    else input.events = elements(["track"]);
  }

  /** An id of the foreign app in place of an own one. */
  #foreignMember(input: Record<string, unknown>): Record<string, string> {
    const name = ["reservationId", "balanceId"].find((each) => each in input);
    return name === undefined ? {} : { [name]: this.#random.pick(this.#scene.foreignIds) };
  }

  #pathMember(route: Route, name: string, manner: Manner): string {
    if (manner === "wild") {
      return this.#random.pick(["%00", "%ff", "..%2f..%2fx", "%2e%2e", "a%20b", "%F0%9F%98%80"]);
    }
    if (this.#random.chance(0.1) && (name === "eventId" || name === "runId")) {
      return this.#random.pick(this.#scene.foreignIds);
    }
    // Only reads may name the app under test: the fuzzing changes the playground's keys and catalog alone.
    const isPlayground = name === "appId" && route.method !== "GET";
    const known = name === "id" ? "customerId" : name;
    const text = isPlayground ? this.#scene.playground.appId : this.#values.named(known) ?? "x";
    return encodeURIComponent(text);
  }

  #headers(route: Route, manner: Manner): Record<string, string> {
    const random = this.#random;
    const { app, foreign, playground, endUserTokens } = this.#scene;
    const isAdmin = route.path.startsWith("/api/admin/");
    const key = isAdmin ? random.weighted({ admin: 20, secretLive: 1, none: 1 }) : random.weighted({
      secretLive: 60,
      secretTest: 25,
      publicLive: 6,
      publicTest: 2,
      playground: 8,
      foreign: 1,
      none: 2,
      admin: 1,
    });
    const texts: Record<string, string | null> = {
      admin: this.#scene.secrets.find((text) => text.startsWith("test-admin")) as string,
      none: null,
      foreign: foreign.publicLive,
      playground: playground.secretLive,
      ...app as unknown as Record<string, string>,
    };
    const headers: Record<string, string> = {};
    const text = texts[key];
    if (typeof text === "string") headers.authorization = `Bearer ${text}`;
    if (random.chance(0.15) || key.startsWith("public")) {
      headers["x-end-user-token"] = random.pick(endUserTokens);
    }
    if (random.chance(0.2)) headers["idempotency-key"] = `key_${random.whole(1, 40)}`;
    if (manner === "wild") Object.assign(headers, random.pick(ODD_HEADERS));
    return headers;
  }

  #oddQuery(query: string): string {
    if (!this.#random.chance(0.03)) return query;
    const odd = this.#random.pick([
      "userId=a&userId=b",
      "%00=1",
      "__proto__=1&constructor=2",
      "&&&==",
      "a=%ff",
    ]);
    return `${query === "" ? "?" : `${query}&`}${odd}`;
  }
}

const ODD_HEADERS: readonly Record<string, string>[] = [
  { authorization: "Bearer" },
  { authorization: "bearer x" },
  { authorization: "Basic eDp5" },
  { "content-encoding": "gzip" },
  { "content-type": "application/json; charset=utf-16" },
  { "idempotency-key": "é".repeat(150) },
  { "idempotency-key": "k".repeat(201) },
  { "x-request-id": "<script>" },
  { "x-http-method-override": "DELETE" },
  { "content-length": "5" },
  {},
];

function queryOf(members: Record<string, unknown>): string {
  const pairs = Object.entries(members).filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
      return `${escape(name)}=${escape(text.slice(0, 4000))}`;
    });
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** Percent-encoding that also takes lone surrogates, as the bytes that a careless caller sends. */
function escape(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : "%ED%A0%80";
}

/** The request as a command line that sends it again; a long body is in a file. */
export function curlOf({ method, path, headers, body }: FuzzRequest, bodyFile: string | null): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -i -X ${method} ${quote(`http://127.0.0.1:8000${path}`)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...body === null ? [] : [`--data-binary ${bodyFile === null ? quote(body) : `@${bodyFile}`}`],
  ].join(" ");
}
