// The two kinds of endpoints and of their requests, for whoever makes one, runs one or tells of one. How a request goes
// through an endpoint is in `endpoint.ts`.

import type { z } from "zod";
import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { Answer, Handled } from "./answer.ts";
import type { Access, EndUser } from "./auth.ts";
import type { Definition } from "../contract/definition.ts";
import type { Refused } from "./errors.ts";

/** An endpoint for callers with an API key; `World` is what it works on. */
export interface Endpoint<World> extends Definition {
  readonly access: Access;
  readonly input: z.ZodType;
  /** Whether an answer holds a token: it is then not kept under an idempotency key. */
  readonly answersToken?: boolean;
  /** Whether a call may also come as an element of a batch, where it is known by its value. */
  readonly mayBeInBatch?: boolean;
  /** Whether a call may take long. The cell of its workspace is then not handed over before it has ended. */
  readonly isLong?: boolean;
  /**
   * Whether a call waits outside of its cell, for something to change. It has left when `handle` returns, enters the cell
   * by itself for what it reads, and throws CellGone where the cell has gone meanwhile: it then goes to the new owner.
   */
  readonly waitsOutside?: boolean;
  /** The media type of an answer that goes on as a stream, without the envelope. */
  readonly mediaType?: string;
  readonly handle: (request: EndpointRequest<World, unknown>) => Promise<Handled> | Handled;
}

/** An endpoint that asks for the admin token, or for nothing. */
export interface KeylessEndpoint<World> extends Definition {
  readonly access: "admin" | "open";
  /** What input that does not fit is refused with; by default `invalid_request`, naming the member. */
  readonly misfit?: () => Refused;
  /** The media type of an answer without the envelope. */
  readonly mediaType?: string;
  /** The app or workspace that a call is about: it runs at the owner of its cell. Left out: it runs anywhere. */
  readonly about?: (request: Pick<KeylessRequest<World, unknown>, "world" | "input">) => About | null;
  /** Set where each member answers for its own cells: what their answers come to together. */
  readonly gather?: (answers: readonly unknown[]) => unknown;
  readonly isLong?: boolean;
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
