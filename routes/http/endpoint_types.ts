// The two kinds of endpoints, and what their handlers get.

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

/** An endpoint for callers with the admin token, or without any key. */
export interface KeylessEndpoint<World> extends Omit<KeylessDefinition, "about"> {
  /** Returns the refusal of invalid input; by default `invalid_request` with the name of the member. */
  readonly misfit?: () => Refused;
  /** Whether a request may be read, by the members of its path. Others are refused with `misfit`, and no byte of their body is read. */
  readonly admits?: (world: World, path: Readonly<Record<string, string>>) => boolean;
  /** Returns the app or workspace that a call is about: the call runs at the owner of its cell. Left out: it runs anywhere. */
  readonly about?: (request: Pick<KeylessRequest<World, unknown>, "world" | "input">) => About | null;
  /** Answers HEAD where the answer to GET costs much to make; else HEAD makes that answer and drops its body. */
  readonly head?: (request: KeylessRequest<World, unknown>) => Response;
  /** Makes one answer of the answers of all owners, where each owner answers for its own cells. */
  readonly gather?: (answers: readonly unknown[]) => unknown;
  readonly handle: (
    request: KeylessRequest<World, unknown>,
  ) => Promise<Answer | Response> | Answer | Response;
}

/** The app or workspace that a call is about. */
export type About = { readonly appId: string } | { readonly workspaceId: string };

/** A request that has passed every check. */
export interface EndpointRequest<World, Input> {
  readonly world: World;
  readonly caller: Caller;
  /** The end user of a token; null with a secret key. */
  readonly endUser: EndUser | null;
  readonly input: Input;
  /** The address as the caller wrote it. */
  readonly url: string;
  /** Null for a call without an idempotency key. */
  readonly idempotent: IdempotentCall | null;
}

/** A request to an endpoint without an API key. */
export interface KeylessRequest<World, Input> {
  readonly world: World;
  readonly input: Input;
  /** The request id that its answer carries. */
  readonly requestId: string;
  /** The name of the operator of the console who makes the call, or "api". */
  readonly who: string;
}
