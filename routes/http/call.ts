// A call that was checked and may run, and the endpoints and internal calls that it can be a call of. Where it runs is
// decided in `dispatch.ts`.

import type { Directory } from "../../actors/directory.ts";
import type { Idempotency, IdempotentCall } from "../../actors/idempotency.ts";
import type { Term } from "../../actors/term.ts";
import type { ClusterNode } from "../../src/cluster/node.ts";
import type { Caller, Registry } from "../../src/tenant/registry.ts";
import type { CallDefinition } from "../contract/definition.ts";
import type { Handled } from "./answer.ts";
import type { ReadingWorld } from "./app_world.ts";
import type { EndUser } from "./auth.ts";
import type { Members } from "./json_body.ts";
import type { Endpoint, EndpointRequest, KeylessEndpoint } from "./endpoint_types.ts";
import type { CountingWorld } from "./rate_limit.ts";
import { requestId } from "./respond.ts";

/** What the dispatch of calls needs of the running term. */
export interface DispatchWorld extends CountingWorld, ReadingWorld {
  readonly registry: Pick<Registry, "authenticate" | "callerById" | "apps" | "version" | "heirs">;
  readonly node: ClusterNode;
  readonly term: Pick<Term, "keepAnswer" | "doors" | "isServing"> & {
    readonly idempotency: Pick<Idempotency, "keyPrefixOf" | "run">;
    readonly directory: Pick<Directory, "runByKey" | "inMemoryByKey">;
  };
}

/** What the dispatch reads of a definition. */
type Traits = Pick<CallDefinition, "id" | "isLong" | "waitsOutside" | "answersToken" | "mediaType">;

/**
 * A call that processes make to the owner of a caller's workspace. It has no route. Its id is unique among all calls. Its
 * input consists of JSON values, and is checked where it is made, not again at the owner.
 */
export interface InternalCall<World, Input, Data> extends Traits {
  handle(request: EndpointRequest<World, Input>): Promise<Handled<Data>> | Handled<Data>;
}

/** What runs for a call on behalf of a caller. */
export type KeyedTarget<World> = Endpoint<World> | InternalCall<World, unknown, unknown>;

/** What runs for a call. */
export type CallTarget<World> = KeyedTarget<World> | KeylessEndpoint<World>;

/** A call on behalf of a caller with an API key. */
export interface KeyedCall<World> {
  readonly target: KeyedTarget<World>;
  readonly caller: Caller;
  readonly endUser: EndUser | null;
  /** The input before it was checked. */
  readonly members: Members;
  readonly input: unknown;
  /** The address as the caller wrote it. */
  readonly url: string;
  readonly idempotent: IdempotentCall | null;
  /** Whether the rate limit of its key has counted it. */
  readonly isCounted: boolean;
}

/** A call on behalf of no caller. */
export interface KeylessCall<World> {
  readonly target: KeylessEndpoint<World>;
  readonly caller: null;
  readonly members: Members;
  readonly input: unknown;
  /** The name of the operator who makes a write, or "api"; absent for a read. */
  readonly who?: string | undefined;
}

export type CheckedCall<World> = KeyedCall<World> | KeylessCall<World>;

/** What a call returns: an answer, or a response of its own where the answer has no envelope. */
export type Outcome = Handled | Response;

/** The origin of a call: a request, or the id of a request for logs. */
export type Origin = Request | string;

/** The request id of an origin. */
export function idOf(origin: Origin): string {
  return typeof origin === "string" ? origin : requestId(origin);
}
