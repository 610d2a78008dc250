// The service: waits for the lease as a warm standby, serves as the writer for a term, and starts over when the
// term ends. Whatever ends a term (a lost session, a failed append or drain) leads to the same path: drop
// everything in memory, take the lease again, replay the journal, serve.

import { Term } from "../../actors/term.ts";
import { Stopping, Unavailable, type UserStore } from "../../actors/port.ts";
import { monthOf } from "../../actors/budget.ts";
import type { IdSource } from "../domain/ids.ts";
import type { Clock } from "../process/clock.ts";
import type { Features } from "../process/features.ts";
import { LEASE_LIMITS, PROCESS_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { Counts } from "../observability/counts.ts";
import type { Spans } from "../observability/spans.ts";
import { Registry } from "../tenant/registry.ts";
import type { Database, PinnedSession } from "../storage/database.ts";
import { type StoreLease, tryLease } from "../storage/journal/lease.ts";
import { loadAiSpend, loadIssues, loadOperations, loadRegistry } from "../storage/stores/registry_store.ts";
import { openUserStore } from "../storage/stores/user_store.ts";

/** What serves requests: the parts of one term. */
export interface Serving {
  readonly term: Term;
  readonly registry: Registry;
  readonly lease: StoreLease;
  readonly database: Database;
  readonly store: UserStore;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly features: Features;
  readonly counts: Counts;
}

export type ServiceState = "starting" | "standby" | "serving" | "stopping";

/** One process's part in serving a database. */
export class Service {
  readonly counts = new Counts();
  /** Null without tracing. */
  readonly spans: Spans | null;
  readonly #database: Database;
  readonly #ids: IdSource;
  readonly #clock: Clock;
  #state: ServiceState = "starting";
  #serving: Serving | null = null;
  #loop: Promise<void> | null = null;
  #wake: () => void = () => {};

  readonly #features: Features;

  constructor(
    database: Database,
    ids: IdSource,
    clock: Clock,
    features: Features,
    spans: Spans | null = null,
  ) {
    this.spans = spans;
    this.#features = features;
    this.#database = database;
    this.#ids = ids;
    this.#clock = clock;
  }

  get state(): ServiceState {
    return this.#state;
  }

  /** The running term, or null while this process is not the writer. */
  get serving(): Serving | null {
    const serving = this.#serving;
    return serving !== null && this.#state === "serving" && serving.term.isServing ? serving : null;
  }

  /** The running term; refuses while this process is not the writer. */
  requireServing(): Serving {
    const { serving } = this;
    if (serving !== null) return serving;
    if (this.#isStopping()) throw new Stopping("The service is stopping");
    throw new Unavailable("This process is not the writer");
  }

  /** Starts to try for the lease. The promise resolves when the service is stopped. */
  start(): Promise<void> {
    return this.#loop ??= this.#run();
  }

  /** Resolves when this process serves. */
  async ready(): Promise<Serving> {
    while (this.serving === null) {
      if (this.#isStopping()) throw new Stopping("The service is stopping");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return this.serving;
  }

  /** Answers no new calls; those in flight go on. */
  refuseCalls(): void {
    this.#state = "stopping";
  }

  /** Stops: takes no new calls, makes what was decided durable, lets the lease go. */
  async stop(): Promise<void> {
    this.#state = "stopping";
    const serving = this.#serving;
    this.#serving = null;
    this.#wake();
    if (serving !== null) {
      await serving.term.close().catch((error) => this.#warn("Stop was not clean", error));
    }
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#isStopping()) {
      try {
        await this.#serveOneTerm();
      } catch (error) {
        this.#warn("Cannot become the writer", error);
      }
      if (!this.#isStopping()) await this.#pause(PROCESS_LIMITS.reconnectMs);
    }
  }

  async #serveOneTerm(): Promise<void> {
    const closed = Promise.withResolvers<Error>();
    let lease: StoreLease | null = null;
    const session = await this.#database.pin(() => closed.resolve(new Unavailable("The session closed")));
    try {
      lease = await this.#waitForLease(session);
      if (lease === null) return;
      const term = await this.#openTerm(lease);
      if (this.#isStopping()) return await term.close();
      void closed.promise.then((error) => term.fail(error));
      log("info", "Serving as the writer");
      const fault = await term.ended;
      this.#serving = null;
      if (this.#isStopping()) return;
      this.counts.termsLost += 1;
      this.#warn("The term ended", fault);
    } finally {
      this.#serving = null;
      await (lease ?? session).close().catch(() => {});
    }
  }

  async #waitForLease(session: PinnedSession): Promise<StoreLease | null> {
    while (!this.#isStopping()) {
      const lease = await tryLease(this.#database, session);
      if (lease !== null) return lease;
      if (this.#state !== "standby") log("info", "Waiting as a standby");
      this.#state = "standby";
      await this.#pause(LEASE_LIMITS.tryEveryMs);
    }
    return null;
  }

  async #openTerm(lease: StoreLease): Promise<Term> {
    const store = openUserStore(this.#database);
    const registry = new Registry(await loadRegistry(this.#database), this.#clock);
    const month = monthOf(this.#clock.now());
    const operations = await loadOperations(this.#database, month);
    const aiSpend = await loadAiSpend(this.#database, month);
    const issues = await loadIssues(this.#database);
    const lastUserKey = await store.lastUserKey();
    const clock = this.#clock;
    const realNow = () => clock.now();
    const { counts, spans } = this;
    const loaded = { operations, issues, aiSpend, lastUserKey };
    const term = new Term({
      lease,
      store,
      ids: this.#ids,
      ...loaded,
      realNow,
      counts: counts.runtime,
      spans,
    });
    counts.termsBegun += 1;
    const parts = { term, registry, lease, store, clock, counts };
    this.#serving = { ...parts, database: this.#database, ids: this.#ids, features: this.#features };
    if (!this.#isStopping()) this.#state = "serving";
    return term;
  }

  #isStopping(): boolean {
    return this.#state === "stopping";
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #warn(message: string, error: unknown): void {
    log("warn", message, { error: messageOf(error) });
    if (!this.#isStopping()) this.#state = "starting";
  }
}
