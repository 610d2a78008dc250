// The two kinds of endpoints and of their requests, for whoever makes one, runs one or tells of one. How a request goes
// through an endpoint is in `endpoint.ts`.

import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { Answer, Handled } from "./answer.ts";
import type { EndUser } from "./auth.ts";
import type { KeyedDefinition, KeylessDefinition } from "../contract/definition.ts";
import type { Refused } from "./errors.ts";

/** An endpoint for callers with an API key; `World` is what it works on. */
export interface Endpoint<World> extends KeyedDefinition {
  readonly handle: (request: EndpointRequest<World, unknown>) => Promise<Handled> | Handled;
}

/** An endpoint that asks for the admin token, or for nothing. */
export interface KeylessEndpoint<World> extends Omit<KeylessDefinition, "about"> {
  /** What input that does not fit is refused with; by default `invalid_request`, naming the member. */
  readonly misfit?: () => Refused;
  /** The app or workspace that a call is about: it runs at the owner of its cell. Left out: it runs anywhere. */
  readonly about?: (request: Pick<KeylessRequest<World, unknown>, "world" | "input">) => About | null;
  /** Set where each member answers for its own cells: what their answers come to together. */
  readonly gather?: (answers: readonly unknown[]) => unknown;
  readonly handle: (
    request: KeylessRequest<World, unknown>,
  ) => Promise<Answer | Response> | Answer | Response;
}

/** What a call without an API key is about. */
export type About = { readonly appId: string } | { readonly workspaceId: string };

/** A request that has passed every check before its decision. */
export interface EndpointRequest<World, Input> {
  readonly world: World;
  readonly caller: Caller;
  /** The end user that a token stands for; null with a secret key. */
  readonly endUser: EndUser | null;
  readonly input: Input;
  /** The address as the caller gave it. */
  readonly url: string;
  /** Null for a call without an idempotency key. */
  readonly idempotent: IdempotentCall | null;
}

/** A request to an endpoint without an API key. */
export interface KeylessRequest<World, Input> {
  readonly world: World;
  readonly input: Input;
  /** The id that its answer carries. */
  readonly requestId: string;
}
