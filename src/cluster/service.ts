// The service: joins the other nodes of the database, serves for a term, and joins again when the term ends. Every fault
// that ends a term (a lost session, a failed append or drain) takes the same path: drop everything in memory, begin a new
// term, and serve. The next owner of each cell replays what the term left in the journal.

import { MayNotAnswer, Stopping, Unavailable } from "../../actors/port.ts";
import type { Network } from "../channel/network.ts";
import { agrees, awaitedDifference, fingerprintsOf, PROTOCOL } from "./fingerprints.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { RequestLog } from "../audit/request_log.ts";
import { Counts } from "./counts.ts";
import { Downloads } from "../process/downloads.ts";
import type { Spans } from "../process/counts/spans.ts";
import type { Clock } from "../process/clock.ts";
import type { Features } from "../process/features.ts";
import { LEASE_LIMITS, PROCESS_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { ConfigError } from "../process/settings.ts";
import { Streams } from "../process/streams.ts";
import type { Database, PinnedSession } from "../storage/database.ts";
import { firstSeq, lastSeq } from "../storage/journal/ranges.ts";
import { joinCluster } from "../storage/journal/writer.ts";
import { freeCells } from "../storage/nodes/cell_store.ts";
import type { StoreRow } from "../storage/nodes/store_numbers.ts";
import { endEveryNode, endNode, readIdentity, readNodes } from "../storage/nodes/node_store.ts";
import { AttemptThread } from "../webhooks/attempt_thread.ts";
import type { Transport } from "../webhooks/transport.ts";
import { type OpenStripe, stripeOpener } from "../integrations/stripe/stripe_client.ts";
import { NodeLink, type PassedHandlers } from "./node_link.ts";
import { StillStandby } from "./store_list.ts";
import { assemble, type ProcessParts, type Serving } from "./serving.ts";
import { rest, within } from "../process/rest.ts";

export type { Serving } from "./serving.ts";

/** What a process is doing. */
export type ServiceState = "starting" | "copying" | "standby" | "serving" | "leaving" | "stopping";

/** How a process takes part in the cluster. */
export interface ServiceOptions {
  /** Null without tracing. */
  readonly spans?: Spans | null;
  /** How nodes reach each other, or how to open it; null on the embedded store. */
  readonly network?: Network | null | (() => Promise<Network | null>);
  /** 1 to take cells; 0 for a front, which takes none. */
  readonly share?: number;
  /** The admin token, which must be the same in all nodes. */
  readonly adminToken?: string | null;
  /** Makes the attempts to deliver webhook messages; by default in a thread. */
  readonly transport?: Transport;
  /** Opens clients of Stripe; by default of the official package. */
  readonly openStripe?: OpenStripe;
  /** Runs in the first term, before this process is ready and answers any call. */
  readonly prepare?: (serving: Serving) => Promise<void>;
  /** Where the process has several databases. */
  readonly store?: StoreOptions;
}

/** One of several databases of a process. */
interface StoreOptions {
  readonly name: string;
  /** The names of all databases in alphabetical order. */
  readonly names: string;
  /** A service of the same process, whose streams, downloads and transport this one shares; null for the first. */
  readonly beside: Service | null;
  /** Opens and checks the database before each term. @throws StillStandby while it is a standby of another one */
  readonly open: () => Promise<void>;
  /** Plans a store that a split makes of a standby. */
  readonly plan: (to: string) => Promise<StoreRow>;
  /** Whether a setting that differs from that of other nodes ends the process; otherwise it keeps this database unserved. */
  readonly endsProcess: () => boolean;
}

/** How long a node that hands everything over waits for its last calls. */
const LEAVE_MS = 3_000;

/**
 * How long a stopping process waits for what is inside its cells before it frees them in the tables: a step of a sweep,
 * which has a flush and a transaction. Calls had longer before.
 */
const LAST_CALLS_MS = 500;

/** How long a stopping process waits for a move of cells that it has begun. */
const LAST_ROUND_MS = 2_500;

/** How long a stopping process waits for the work set by `beforeStop`. */
const LAST_WORK_MS = 2_000;

/** One process's part in serving a database. */
export class Service {
  readonly counts: Counts;
  /** Streamed answers: they outlive terms, and end when this process accepts no new calls. */
  readonly streams: Streams;
  /** Failed requests with an API key. */
  readonly requestLog: RequestLog;
  readonly #parts: ProcessParts;
  readonly #options: ServiceOptions;
  #state: ServiceState = "starting";
  #serving: Serving | null = null;
  #isPrepared = false;
  #awaited: string | null = null;
  #loop: Promise<void> | null = null;
  #wake: () => void = () => {};
  #handlers: PassedHandlers | null = null;
  readonly #lastWork = new Set<() => Promise<void>>();

  constructor(
    database: Database,
    ids: IdSource,
    clock: Clock,
    features: Features,
    options: ServiceOptions = {},
  ) {
    const beside = options.store?.beside ?? null;
    this.counts = new Counts(beside?.counts);
    this.streams = beside?.streams ?? new Streams(this.counts.streams);
    this.requestLog = new RequestLog(() => this.#serving, this.counts.runtime);
    const {
      spans = null,
      transport = beside?.transport ?? new AttemptThread(features.allowsPrivateWebhooks),
    } = options;
    const downloads = beside?.downloads ?? new Downloads(this.counts.downloads);
    const { openStripe = stripeOpener(features.stripe.base) } = options;
    this.#parts = {
      ...{ database, ids, clock, features, counts: this.counts, spans, transport, downloads },
      requestLog: this.requestLog,
      openStripe,
      storeName: options.store?.name ?? null,
      planStore: options.store?.plan ?? null,
    };
    this.#options = options;
  }

  /** Makes the attempts to deliver webhook messages. */
  get transport(): Transport {
    return this.#parts.transport;
  }

  get downloads(): Downloads {
    return this.#parts.downloads;
  }

  /** The name of its database in HOLDFAST_DATABASES; null without the setting. */
  get storeName(): string | null {
    return this.#parts.storeName;
  }

  /** Null without tracing. */
  get spans(): Spans | null {
    return this.#parts.spans;
  }

  /** What a database that is a standby of another one waits for; null for any other database. */
  get awaited(): string | null {
    return this.#state === "copying" ? this.#awaited : null;
  }

  get state(): ServiceState {
    return this.#state;
  }

  /** The running term, or null while this process may not answer. */
  get serving(): Serving | null {
    const serving = this.#serving;
    const isOn = this.#state === "serving" || this.#state === "leaving";
    return serving !== null && isOn && serving.term.isServing ? serving : null;
  }

  /** Returns the running term. @throws MayNotAnswer, or Stopping, while this process may not answer */
  requireServing(): Serving {
    const { serving } = this;
    if (serving !== null) return serving;
    if (this.#isStopping()) throw new Stopping("The service is stopping");
    throw new MayNotAnswer();
  }

  /** Sets the handlers of calls that other nodes pass on. */
  handlePassed(handlers: PassedHandlers): void {
    this.#handlers = handlers;
  }

  /** Adds work that a stop runs while changes can still be made durable; a stop waits for it for 2 s at most. */
  beforeStop(work: () => Promise<void>): void {
    this.#lastWork.add(work);
  }

  /**
   * Starts to serve. The promise resolves when the service has stopped.
   *
   * @throws ConfigError when the settings of this process differ from those of the other nodes
   */
  start(): Promise<void> {
    return this.#loop ??= this.#run();
  }

  /** Resolves with the running term once this process serves. */
  async ready(): Promise<Serving> {
    while (this.serving === null) {
      if (this.#isStopping()) throw new Stopping("The service is stopping");
      await rest(20);
    }
    return this.serving;
  }

  /** Whether this process can answer, or pass on, calls for every workspace that has an owner. */
  get isReady(): boolean {
    return this.#state === "serving" && this.serving?.node.isReady === true;
  }

  /**
   * Hands every cell over to the other nodes and serves on as a front, so that callers do not notice the stop.
   *
   * @returns false if no other node can take the cells
   */
  async leave(): Promise<boolean> {
    const { serving } = this;
    if (serving === null) return false;
    const before = this.#state;
    this.#state = "leaving";
    try {
      if (await serving.node.leave(LEAVE_MS)) return true;
    } catch (error) {
      this.#warn("The cells could not be handed over", error);
    }
    // The service may have been stopped meanwhile.
    if (this.#state === "leaving") this.#state = before;
    return false;
  }

  /** Refuses new calls; calls in flight go on. */
  refuseCalls(): void {
    this.#state = "stopping";
    this.streams.endAll();
  }

  /** Ends the streams, so that their readers connect to another process; calls go on. */
  endStreams(): void {
    this.streams.endAll();
  }

  /** Stops: refuses new calls, makes all changes durable, frees the cells. */
  async stop(): Promise<void> {
    this.refuseCalls();
    await Promise.race([Promise.allSettled([...this.#lastWork].map((work) => work())), after(LAST_WORK_MS)]);
    await Promise.race([this.requestLog.close(), after(LAST_WORK_MS)]);
    const serving = this.#serving;
    this.#serving = null;
    this.#wake();
    if (serving !== null) {
      await endTerm(serving).catch((error) => this.#warn("Stop was not clean", error));
    }
    await this.#loop;
    if ((this.#options.store?.beside ?? null) === null) this.#parts.transport.close();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping()) {
      try {
        await this.#serveOneTerm();
      } catch (error) {
        if (error instanceof ConfigError && this.#options.store?.endsProcess() !== false) {
          this.#state = "stopping";
          throw error;
        }
        if (error instanceof StillStandby) this.#awaitSplit(error);
        else this.#warn("Cannot serve", error);
      }
      if (!this.#isStopping()) await this.#pause(PROCESS_LIMITS.reconnectMs);
    }
  }

  async #serveOneTerm(): Promise<void> {
    await this.#options.store?.open();
    const closed = Promise.withResolvers<Error>();
    let serving: Serving | null = null;
    const session = await this.#parts.database.pin(() =>
      closed.resolve(new Unavailable("The session closed"))
    );
    try {
      serving = await this.#join(session);
      if (serving === null) return;
      const { term } = serving;
      void closed.promise.then((error) => term.fail(error));
      await Promise.race([serving.node.open(), term.ended.then((fault) => Promise.reject(fault))]);
      this.counts.termsBegun += 1;
      this.#serving = serving;
      if (!this.#isPrepared) await this.#options.prepare?.(serving);
      this.#isPrepared = true;
      if (this.#isStopping()) return await endTerm(serving);
      this.#state = "serving";
      log("info", "Serving", {
        term: serving.node.term,
        cells: term.doors.held.length,
        ...this.#labels,
      });
      const fault = await term.ended;
      this.#serving = null;
      if (this.#isStopping()) return;
      this.counts.termsLost += 1;
      this.#warn("The term ended", fault);
    } finally {
      this.#serving = null;
      if (serving === null) await session.close().catch(() => {});
      else await letGo(serving);
    }
  }

  /** Joins the other nodes; null when this process is stopped first. */
  async #join(session: PinnedSession): Promise<Serving | null> {
    while (!this.#isStopping()) {
      const serving = await this.#tryToJoin(session);
      if (serving !== null) return serving;
      if (this.#state !== "standby") log("info", "Waiting as a standby", this.#labels);
      this.#state = "standby";
      await this.#pause(LEASE_LIMITS.tryEveryMs);
    }
    return null;
  }

  /** Joins once; null while nodes live that this process cannot work with. */
  async #tryToJoin(session: PinnedSession): Promise<Serving | null> {
    const { network = null, share = 1, adminToken = null, store } = this.#options;
    const { database, features } = this.#parts;
    // The lock on the folder proves that no earlier process is left, however recent its last heartbeat.
    if (database.kind === "embedded") await endEveryNode(session);
    const identity = await readIdentity(session);
    const fingerprints = fingerprintsOf(identity.secret, adminToken, features, store?.names);
    const living = await livingNodes(session);
    if (!agrees(fingerprints, living)) {
      if (this.#state !== "standby") {
        const differs = awaitedDifference(fingerprints, living);
        log("info", "Other processes differ in something that must be the same", {
          differs,
          ...this.#labels,
        });
      }
      return null;
    }
    const opened = typeof network === "function" ? await network() : network;
    const link = new NodeLink(() => this.#handlers, this.counts.cluster);
    const writer = await joinCluster(database, session, async (term) => {
      const { clusterId, secret } = identity;
      const address = await link.open(opened, { database: clusterId, secret, protocol: PROTOCOL, term });
      return { address, share, fingerprints };
    }).catch(async (error) => {
      await link.hub?.close();
      throw error;
    });
    if (writer === null) return null;
    const serving = assemble(this.#parts, writer, link, share);
    // Two nodes that joined at the same moment see each other now; the later one leaves.
    const earlier = (await livingNodes(session)).filter(({ term }) => term < writer.term);
    try {
      if (agrees(fingerprints, earlier)) return serving;
      throw new Unavailable("A process of another version joined at the same time");
    } catch (error) {
      await endNode(session, writer.term);
      await letGo(serving);
      throw error;
    }
  }

  /** Logs once why a database that is still a standby is not served. */
  #awaitSplit({ message }: StillStandby): void {
    if (this.#awaited !== message) log("info", message);
    this.#awaited = message;
    if (!this.#isStopping()) this.#state = "copying";
  }

  /** Fields of log lines that name the database, where there are several. */
  get #labels(): Readonly<Record<string, string>> {
    return this.storeName === null ? {} : { store: this.storeName };
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
    log("warn", message, { error: messageOf(error), ...this.#labels });
    if (!this.#isStopping() && this.#state !== "leaving") this.#state = "starting";
  }
}

/** Nodes that may answer, by the database's clock. */
async function livingNodes(session: PinnedSession) {
  const nodes = await readNodes(session);
  return nodes.filter(({ hasEnded, silentMs }) => !hasEnded && silentMs < LEASE_LIMITS.validMs);
}

/** Ends a term in order: changes are durable and in the tables, and the cells are free. Then `letGo` closes it. */
async function endTerm(serving: Serving): Promise<void> {
  const { term, node, sender, topUps } = serving;
  sender.close();
  topUps.close();
  try {
    await node.end(() => freeAll(serving), LAST_ROUND_MS);
  } finally {
    term.fail(new Stopping("The service is stopping"));
  }
}

/**
 * Frees all cells; their doors are sealed. Calls that still run get a 503 afterwards, and the cells keep this term in their
 * rows: the next owner has to look for something to replay.
 */
async function freeAll({ term, lease, upkeep, clock, buckets }: Serving): Promise<void> {
  const writeAll = async () => {
    await term.flush();
    await term.refusedCalls.write();
  };
  await writeAll();
  const cells = term.doors.held;
  if (cells.length === 0 || !await within(LAST_CALLS_MS, term.doors.shut(cells))) return;
  await writeAll();
  const sides = new Map(cells.map((cell) => [cell, buckets.remove(cell)]));
  // All of the term's batches: nothing may be appended once the doors are sealed and the cells are empty.
  const batches = [firstSeq(lease.term), lastSeq(lease.term)] as const;
  await freeCells(upkeep, { term: lease.term, batches, clockMs: clock.now(), sides });
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => Deno.unrefTimer(setTimeout(resolve, ms)));
}

/** Closes what a term had open, however it ended. */
async function letGo({ term, node, lease, upkeep, sender, topUps, close }: Serving): Promise<void> {
  sender.close();
  topUps.close();
  term.fail(new Unavailable("The term ended"));
  // If the database still answers, the next owners need not wait for the last heartbeat to expire.
  await endNode(upkeep, lease.term).catch(() => {});
  await node.close().catch(() => {});
  await lease.close().catch(() => {});
  await close().catch(() => {});
}
