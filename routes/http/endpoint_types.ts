// The two kinds of endpoints, and what their handlers get.

import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { Belonging } from "../../src/cluster/stores.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { Answer, Handled } from "./answer.ts";
import type { EndUser, Source } from "./auth.ts";
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
  readonly about?: (request: Pick<KeylessRequest<World, unknown>, "world" | "input">) => Belonging | null;
  /** Answers HEAD where the answer to GET costs much to make; else HEAD makes that answer and drops its body. */
  readonly head?: (request: KeylessRequest<World, unknown>) => Response;
  /** Makes one answer of the answers of all owners, where each owner answers for its own cells. */
  readonly gather?: (answers: readonly unknown[]) => unknown;
  /** What a call does where the process has several databases. */
  readonly across?: Across<World>;
  readonly handle: (
    request: KeylessRequest<World, unknown>,
  ) => Promise<Answer | Response> | Answer | Response;
}

/** The running terms of the databases of a process. */
export interface StoreSource<World> extends Source<World> {
  readonly isOne: boolean;
  readonly services: readonly StoreService<World>[];
  /** The services of databases with workspaces. */
  readonly needed: readonly StoreService<World>[];
  /** The terms of all databases. @throws MayNotAnswer where one is missing */
  requireAll(): readonly World[];
  /** The term of the database that has an app or workspace. @throws MayNotAnswer where it may be on a missing one */
  requireServingOf(about: Belonging): World;
  /** The place of the database with a name, or, for null, of the one with the fewest workspaces; -1 for an unknown name. */
  placeFor(name: string | null): number;
}

/** The service of a database. */
export interface StoreService<World> {
  readonly storeName: string | null;
  readonly state: string;
  /** What it waits for while it is a standby of another one; null for any other. */
  readonly awaited: string | null;
  /** The running term; null while the process may not answer for it. */
  readonly serving: World | null;
  requireServing(): World;
}

/** A database of several, and what the process does with it. */
export interface Stored {
  readonly name: string;
  readonly state: string;
  readonly awaited: string | null;
}

/**
 * What a call does where the process has several databases. A call that is about an app or workspace runs on the one that
 * has it; one with `gather` runs on all, and gathers once more. Left out: it runs on any.
 */
export interface Across<World, Input = unknown, Data = unknown> {
  /** Makes one answer of the answers of all. Without `absent`, one that cannot answer makes the call a 503. */
  readonly join?: (answers: readonly Data[], input: Input, stores: readonly Stored[]) => Data;
  /** Makes the answer for a database that cannot answer. */
  readonly absent?: (store: Stored) => Data;
  /** An app or workspace that limits a call of all to one database; undefined for none. */
  readonly about?: (input: Input) => Belonging | undefined;
  /** Chooses the database, by its place in the list; undefined: by the app or workspace. */
  readonly choose?: (source: StoreSource<World>, input: Input) => number | undefined | Promise<number>;
}

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
