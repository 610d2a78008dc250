// The databases of a process, one or several. Each has its own service, with its own term, registry and users. All data of
// a workspace is on one database, and no decision spans two. A fault of a database ends only its own term: calls of its
// workspaces get a 503, and all others continue.
//
// With one database, every method does the same as the method of its service.

import { MayNotAnswer, Stopping } from "../../actors/port.ts";
import { REQUEST_LIMITS } from "../process/limits.ts";
import { rest, within } from "../process/rest.ts";
import type { Spans } from "../process/counts/spans.ts";
import type { Streams } from "../process/streams.ts";
import type { Caller } from "../tenant/registry.ts";
import type { Counts } from "./counts.ts";
import type { Service, ServiceState, Serving } from "./service.ts";

/** How long a new process waits for all of its databases before it calls itself ready without some. */
const START_MS = 15_000;
/** How long a stopping process waits for the work set by `beforeStop`. */
const LAST_WORK_MS = 2_000;
/** What a process with several databases does, if one of them does it. */
const STATES: readonly ServiceState[] = ["stopping", "leaving", "standby", "serving", "starting"];

/** The workspace, or an app of it, that leads to a database. */
export type Belonging = { readonly appId: string } | { readonly workspaceId: string };

/** The databases of a process. */
export class Stores {
  readonly services: readonly Service[];
  /** The service of the only database; null where there are several. */
  readonly #only: Service | null;
  readonly #first: Service;
  /** The service in which each key was found last: the next call with it looks there first. */
  readonly #hints = new Map<string, Service>();
  readonly #startedAt = performance.now();
  readonly #lastWork = new Set<() => Promise<void>>();

  constructor(services: readonly Service[]) {
    this.services = services;
    this.#first = services[0] as Service;
    this.#only = services.length === 1 ? this.#first : null;
  }

  /** The databases of a service with one. */
  static of(stores: Service | Stores): Stores {
    return stores instanceof Stores ? stores : new Stores([stores]);
  }

  get isOne(): boolean {
    return this.#only !== null;
  }

  /** The counters of the first service, which has those of the process. */
  get counts(): Counts {
    return this.#first.counts;
  }

  /** Null without tracing. */
  get spans(): Spans | null {
    return this.#first.spans;
  }

  get streams(): Streams {
    return this.#first.streams;
  }

  /** The running terms. */
  get terms(): readonly Serving[] {
    return this.services.flatMap(({ serving }) => serving ?? []);
  }

  /**
   * The services of all databases that have workspaces. A standby that a split is to make a database has none until cells are
   * handed over to it.
   */
  get needed(): readonly Service[] {
    if (!this.services.some(({ state }) => state === "copying")) return this.services;
    const heirs = new Set(this.terms.flatMap(({ registry }) => [...registry.heirs]));
    return this.services.filter(({ state, storeName }) => state !== "copying" || heirs.has(storeName ?? ""));
  }

  /** A running term, for calls that concern no workspace; null while this process may not answer for any database. */
  get serving(): Serving | null {
    if (this.#only !== null) return this.#only.serving;
    return this.services.find(({ serving }) => serving !== null)?.serving ?? null;
  }

  /** Returns `serving`. @throws MayNotAnswer, or Stopping, if it is null */
  requireServing(): Serving {
    if (this.#only !== null) return this.#only.requireServing();
    return this.serving ?? this.#first.requireServing();
  }

  /** The running term of every database. @throws MayNotAnswer where one is missing: a list over all is whole, or refused */
  requireAll(): readonly Serving[] {
    return this.needed.map((service) => service.requireServing());
  }

  /**
   * Returns the caller with a key, and the running term of its database. An unknown key has no caller.
   *
   * @throws MayNotAnswer while a database cannot be read that may know the key
   */
  find(presented: string | null): { readonly world: Serving; readonly caller: Caller | null } {
    if (this.#only === null) return this.#findAmong(presented);
    const world = this.#only.requireServing();
    return { world, caller: presented === null ? null : world.registry.authenticate(presented) };
  }

  #findAmong(presented: string | null): { readonly world: Serving; readonly caller: Caller | null } {
    if (presented === null) return { world: this.requireServing(), caller: null };
    const hinted = this.#hints.get(presented)?.serving ?? null;
    const known = hinted?.registry.authenticate(presented) ?? null;
    if (hinted !== null && known !== null) return { world: hinted, caller: known };
    for (const service of this.services) {
      const caller = service.serving?.registry.authenticate(presented) ?? null;
      if (service.serving === null || caller === null) continue;
      if (this.#hints.size >= REQUEST_LIMITS.keysCachedMax) this.#hints.clear();
      this.#hints.set(presented, service);
      return { world: service.serving, caller };
    }
    // A key that one of them revoked is refused whatever else is away.
    const knowing = this.terms.find(({ registry }) => registry.keyNamed(presented) !== null);
    return { world: knowing ?? this.requireAll()[0] as Serving, caller: null };
  }

  /** The running term whose database knows a key, which may be invalid by now; else any. Null while there is none. */
  servingWith(presented: string): Serving | null {
    if (this.#only !== null) return this.#only.serving;
    return this.terms.find(({ registry }) => registry.keyNamed(presented) !== null) ?? this.serving;
  }

  /**
   * The running term of the database that has an app or workspace. One that no database has is unknown to any of them.
   *
   * @throws MayNotAnswer while its database, or one that may have it, cannot be read
   */
  requireServingOf(belonging: Belonging): Serving {
    if (this.#only !== null) return this.#only.requireServing();
    const found = this.terms.find(({ registry }) =>
      "appId" in belonging
        ? registry.apps.has(belonging.appId)
        : registry.workspaces.has(belonging.workspaceId)
    );
    return found ?? this.requireAll()[0] as Serving;
  }

  /** Like `requireServingOf`, but returns null where that throws. */
  servingOf(belonging: Belonging): Serving | null {
    if (this.#only !== null) return this.#only.serving;
    try {
      return this.requireServingOf(belonging);
    } catch (error) {
      if (error instanceof MayNotAnswer || error instanceof Stopping) return null;
      throw error;
    }
  }

  /** Whether any app allows an origin. @throws MayNotAnswer while a database cannot be read whose apps may */
  hasOrigin(origin: string): boolean {
    return this.terms.some(({ registry }) => registry.origins.has(origin)) ||
      this.requireAll().some(({ registry }) => registry.origins.has(origin));
  }

  /** The place in the list of the database with a name; for null, of the served one with the fewest workspaces; -1 for none. */
  placeFor(name: string | null): number {
    if (name !== null) return this.services.findIndex(({ storeName }) => storeName === name);
    const sizes = this.services.map(({ serving }) => serving?.registry.workspaces.size ?? Infinity);
    return sizes.indexOf(Math.min(...sizes));
  }

  get state(): ServiceState {
    if (this.#only !== null) return this.#only.state;
    const has = (state: ServiceState) => this.services.some((service) => service.state === state);
    return STATES.find((state) => has(state) && (state !== "serving" || !this.isStarting)) ?? "starting";
  }

  /**
   * Whether this process can answer calls. One of several databases that is away makes no process unready: every process
   * would be, and the other databases would have none. A new process waits for all of them for a while, and a standby until
   * it may serve: other processes serve meanwhile.
   */
  get isReady(): boolean {
    if (this.#only !== null) return this.#only.isReady;
    return this.state === "serving" && this.services.some(({ isReady }) => isReady);
  }

  /** Whether a new process still waits for one of its databases. */
  get isStarting(): boolean {
    return performance.now() - this.#startedAt < START_MS &&
      this.services.some(({ counts, state }) => counts.termsBegun === 0 && state !== "copying");
  }

  /** Starts to serve every database. The promise resolves when all have stopped, and rejects as that of a service. */
  async start(): Promise<void> {
    await Promise.all(this.services.map((service) => service.start()));
  }

  /** Resolves with a running term once this process can answer calls. */
  async ready(): Promise<Serving> {
    if (this.#only !== null) return await this.#only.ready();
    while (!this.isReady) {
      if (this.state === "stopping") throw new Stopping("The service is stopping");
      await rest(20);
    }
    return this.requireServing();
  }

  /** Adds work that a stop runs while changes can still be made durable; a stop waits for it for 2 s at most. */
  beforeStop(work: () => Promise<void>): void {
    if (this.#only !== null) this.#only.beforeStop(work);
    else this.#lastWork.add(work);
  }

  /** Hands every cell of every database over; false if no other process can take those of one that is served. */
  async leave(): Promise<boolean> {
    const served = this.services.filter(({ serving }) => serving !== null);
    const left = await Promise.all(served.map((service) => service.leave()));
    return left.length > 0 && !left.includes(false);
  }

  /** Refuses new calls; calls in flight go on. */
  refuseCalls(): void {
    for (const service of this.services) service.refuseCalls();
  }

  /** Ends the streams, so that their readers connect to another process; calls go on. */
  endStreams(): void {
    this.streams.endAll();
  }

  /** Stops: refuses new calls, makes all changes durable, frees the cells. */
  async stop(): Promise<void> {
    this.refuseCalls();
    const work = Promise.allSettled([...this.#lastWork].map((each) => each()));
    await within(LAST_WORK_MS, work);
    await Promise.all(this.services.map((service) => service.stop()));
  }
}
