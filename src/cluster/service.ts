// The service: joins the members of the database, serves for a term, and joins again when the term ends. Whatever ends a
// term (a lost session, a failed append or drain) leads to the same path: drop everything in memory, take a new term, let
// whoever takes the cells replay the journal, serve.

import { MayNotAnswer, Stopping, Unavailable, type UserStore } from "../../actors/port.ts";
import { Term } from "../../actors/term.ts";
import type { Network } from "../channel/line.ts";
import { agrees, fingerprintsOf, PROTOCOL } from "./fingerprints.ts";
import { Member } from "./member.ts";
import { Owners } from "./owners.ts";
import type { MemberParts } from "./parts.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { Counts } from "./counts.ts";
import type { Spans } from "../process/counts/spans.ts";
import type { Clock } from "../process/clock.ts";
import type { Features } from "../process/features.ts";
import { LEASE_LIMITS, PROCESS_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { ConfigError } from "../process/settings.ts";
import { Streams } from "../process/streams.ts";
import type { Database, PinnedSession } from "../storage/database.ts";
import { sessionNameOf } from "../storage/journal/ranges.ts";
import { joinMembers, type Writer } from "../storage/journal/writer.ts";
import { freeCells, type InCell, inCellOf } from "../storage/members/cell_store.ts";
import { endEveryMember, endMember, readIdentity, readMembers } from "../storage/members/member_store.ts";
import { openRefusalStore } from "../storage/stores/refusal_store.ts";
import { openUserStore } from "../storage/stores/user_store.ts";
import { RateBuckets } from "../tenant/rate_buckets.ts";
import { Registry } from "../tenant/registry.ts";
import { RegistryChanges } from "../tenant/registry_changes.ts";
import { AttemptThread } from "../webhooks/attempt_thread.ts";
import { randomChance } from "../webhooks/schedule.ts";
import { Sender } from "../webhooks/sender.ts";
import type { Transport } from "../webhooks/transport.ts";
import { MemberLink, type PassedHandlers } from "./member_link.ts";

/** What serves requests: the parts of one term. */
export interface Serving {
  readonly term: Term;
  readonly member: Member;
  readonly registry: Registry;
  readonly changes: RegistryChanges;
  readonly buckets: RateBuckets;
  readonly lease: Writer;
  readonly database: Database;
  /** Writes outside of the journal, which only the owner of a cell can make. */
  readonly inCell: InCell;
  readonly store: UserStore;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly features: Features;
  readonly counts: Counts;
  /** Delivers the messages of webhooks. */
  readonly sender: Sender;
}

export type ServiceState = "starting" | "standby" | "serving" | "leaving" | "stopping";

/** What a process is beside others. */
export interface ServiceOptions {
  /** Null without tracing. */
  readonly spans?: Spans | null;
  /** How members reach each other; null on the embedded store. */
  readonly network?: Network | null;
  /** How much of the cells this process takes: 0 for a front. */
  readonly share?: number;
  /** Its admin token, in which all members must agree. */
  readonly adminToken?: string | null;
  /** What makes the attempts to deliver messages; by default a thread. */
  readonly transport?: Transport;
}

/** How long a stopping member waits for its last calls before it ends them. */
const LEAVE_MS = 3_000;

/** How long a stopping process that leaves nothing to anybody waits for calls that are about to end. */
const LAST_CALLS_MS = 20;

/** How long a stopping process waits for the work that is set before its end. */
const LAST_WORK_MS = 2_000;

/** One process's part in serving a database. */
export class Service {
  readonly counts = new Counts();
  /** Answers that go on: they outlive terms, and end when this process answers no new calls. */
  readonly streams = new Streams(this.counts.streams);
  /** Null without tracing. */
  readonly spans: Spans | null;
  readonly #database: Database;
  readonly #ids: IdSource;
  readonly #clock: Clock;
  readonly #features: Features;
  readonly #options: ServiceOptions;
  readonly #transport: Transport;
  #state: ServiceState = "starting";
  #serving: Serving | null = null;
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
    this.spans = options.spans ?? null;
    this.#features = features;
    this.#database = database;
    this.#ids = ids;
    this.#clock = clock;
    this.#options = options;
    this.#transport = options.transport ?? new AttemptThread(features.allowsPrivateWebhooks);
  }

  get state(): ServiceState {
    return this.#state;
  }

  /** The running term, or null while this process may answer nothing. */
  get serving(): Serving | null {
    const serving = this.#serving;
    const isOn = this.#state === "serving" || this.#state === "leaving";
    return serving !== null && isOn && serving.term.isServing ? serving : null;
  }

  /** The running term; refuses while this process may answer nothing. */
  requireServing(): Serving {
    const { serving } = this;
    if (serving !== null) return serving;
    if (this.#isStopping()) throw new Stopping("The service is stopping");
    throw new MayNotAnswer();
  }

  /** Sets what answers calls that other members pass on. */
  handlePassed(handlers: PassedHandlers): void {
    this.#handlers = handlers;
  }

  /** Sets work that a stop does while what was decided can still be made durable; it is waited for, but not for long. */
  beforeStop(work: () => Promise<void>): void {
    this.#lastWork.add(work);
  }

  /**
   * Starts to serve. The promise resolves when the service is stopped.
   *
   * @throws ConfigError when the settings of this process differ from those of the others
   */
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

  /** Whether calls for every workspace that has an owner can be answered here or passed on. */
  get isReady(): boolean {
    return this.#state === "serving" && this.serving?.member.isReady === true;
  }

  /**
   * Gives everything to the other members and goes on as a front, so that nobody notices the stop.
   *
   * @returns false where nobody is there to take over
   */
  async leave(): Promise<boolean> {
    const { serving } = this;
    if (serving === null) return false;
    const before = this.#state;
    this.#state = "leaving";
    try {
      if (await serving.member.leave(LEAVE_MS)) return true;
    } catch (error) {
      this.#warn("The cells could not be handed over", error);
    }
    // Whoever waited for this may have given up and stopped the service.
    if (this.#state === "leaving") this.#state = before;
    return false;
  }

  /** Answers no new calls; those in flight go on. */
  refuseCalls(): void {
    this.#state = "stopping";
    this.streams.endAll();
  }

  /** Ends the streams, whose readers connect to another process; calls go on. */
  endStreams(): void {
    this.streams.endAll();
  }

  /** Stops: takes no new calls, makes what was decided durable, lets the cells go. */
  async stop(): Promise<void> {
    this.refuseCalls();
    await Promise.race([Promise.allSettled([...this.#lastWork].map((work) => work())), after(LAST_WORK_MS)]);
    const serving = this.#serving;
    this.#serving = null;
    this.#wake();
    if (serving !== null) {
      await endTerm(serving).catch((error) => this.#warn("Stop was not clean", error));
    }
    await this.#loop;
    this.#transport.close();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping()) {
      try {
        await this.#serveOneTerm();
      } catch (error) {
        if (error instanceof ConfigError) {
          this.#state = "stopping";
          throw error;
        }
        this.#warn("Cannot serve", error);
      }
      if (!this.#isStopping()) await this.#pause(PROCESS_LIMITS.reconnectMs);
    }
  }

  async #serveOneTerm(): Promise<void> {
    const closed = Promise.withResolvers<Error>();
    let serving: Serving | null = null;
    const session = await this.#database.pin(() => closed.resolve(new Unavailable("The session closed")));
    try {
      serving = await this.#join(session);
      if (serving === null) return;
      const { term } = serving;
      void closed.promise.then((error) => term.fail(error));
      await Promise.race([serving.member.open(), term.ended.then((fault) => Promise.reject(fault))]);
      this.counts.termsBegun += 1;
      this.#serving = serving;
      if (this.#isStopping()) return await endTerm(serving);
      this.#state = "serving";
      log("info", "Serving", { member: serving.member.term, cells: term.doors.held.length });
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

  /** Joins the other members; null when this process is stopped before. */
  async #join(session: PinnedSession): Promise<Serving | null> {
    while (!this.#isStopping()) {
      const serving = await this.#tryToJoin(session);
      if (serving !== null) return serving;
      if (this.#state !== "standby") log("info", "Waiting as a standby");
      this.#state = "standby";
      await this.#pause(LEASE_LIMITS.tryEveryMs);
    }
    return null;
  }

  /** Null while members that this process cannot work with live. */
  async #tryToJoin(session: PinnedSession): Promise<Serving | null> {
    const { network = null, share = 1, adminToken = null } = this.#options;
    // The folder's lock proves that no process of an earlier start is left, however young its last beat may be.
    if (this.#database.kind === "embedded") await endEveryMember(session);
    const identity = await readIdentity(session);
    const fingerprints = fingerprintsOf(identity.secret, adminToken, this.#features);
    if (!agrees(fingerprints, await livingMembers(session))) return null;
    const link = new MemberLink(() => this.#handlers, this.counts.cluster);
    const writer = await joinMembers(this.#database, session, async (term) => {
      const { clusterId: database, secret } = identity;
      const address = await link.open(network, { database, secret, protocol: PROTOCOL, term });
      return { address, share, fingerprints };
    }).catch(async (error) => {
      await link.hub?.close();
      throw error;
    });
    if (writer === null) return null;
    const serving = this.#assemble(writer, link, share);
    // Two that came at the same moment see each other now; the later one goes.
    const earlier = (await livingMembers(session)).filter(({ term }) => term < writer.term);
    try {
      if (agrees(fingerprints, earlier)) return serving;
      throw new Unavailable("A process of another version came at the same moment");
    } catch (error) {
      await endMember(session, writer.term);
      await letGo(serving);
      throw error;
    }
  }

  #assemble(writer: Writer, link: MemberLink, share: number): Serving {
    const { spans, counts } = this;
    const clock = this.#clock;
    const ids = this.#ids;
    const database = this.#database.named(sessionNameOf(writer.term));
    const store = openUserStore(database);
    const registry = new Registry(clock);
    const realNow = () => clock.now();
    const inCell = inCellOf(database, writer.term);
    const refusalStore = openRefusalStore(inCell);
    const term = new Term({
      lease: writer,
      store,
      refusalStore,
      ids,
      realNow,
      counts: counts.runtime,
      spans,
      onMessages: (messages) => sender.note(messages),
    });
    const changes = new RegistryChanges({
      registry,
      database,
      term: writer.term,
      clock,
      announce: (version) => member.announce(version),
    });
    const buckets = new RateBuckets();
    const sender = new Sender({
      term,
      registry,
      changes,
      database,
      inCell,
      clock,
      transport: this.#transport,
      chance: randomChance,
      counts: counts.webhooks,
    });
    registry.onWebhook = (webhook) => sender.changed(webhook);
    const parts: MemberParts = {
      writer,
      term,
      registry,
      changes,
      buckets,
      database,
      clock,
      hub: link.hub,
      owners: new Owners(),
      counts: counts.cluster,
      sender,
    };
    const member = new Member(parts, share);
    link.member = member;
    const features = this.#features;
    return {
      term,
      member,
      registry,
      changes,
      buckets,
      lease: writer,
      database,
      inCell,
      store,
      ids,
      clock,
      features,
      counts,
      sender,
    };
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
    if (!this.#isStopping() && this.#state !== "leaving") this.#state = "starting";
  }
}

/** Members that may answer, as the database sees them. */
async function livingMembers(session: PinnedSession) {
  const members = await readMembers(session);
  return members.filter(({ hasEnded, silentMs }) => !hasEnded && silentMs < LEASE_LIMITS.validMs);
}

/** Ends a term in good order: what was decided is durable and in the tables, the cells are free, and the row says so. */
async function endTerm({ term, member, lease, database, clock, buckets, sender }: Serving): Promise<void> {
  const cells = term.doors.held;
  sender.close();
  try {
    await term.flush();
    await term.refusedCalls.write();
    // Calls that are still inside get a 503 below; the next owner then finds nothing to replay, but has to look.
    if (cells.length > 0 && await isEmptySoon(term.doors.shut(cells))) {
      await term.flush();
      await term.refusedCalls.write();
      const sides = new Map(cells.map((cell) => [cell, buckets.remove(cell)]));
      await freeCells(database, lease.term, clock.now(), sides);
    }
  } finally {
    term.fail(new Stopping("The service is stopping"));
    await endMember(database, lease.term).catch(() => {});
    await member.close();
    await lease.close();
  }
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => Deno.unrefTimer(setTimeout(resolve, ms)));
}

async function isEmptySoon(empty: Promise<void>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), LAST_CALLS_MS));
  try {
    return await Promise.race([empty.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets go of what a term had open, however it ended. */
async function letGo({ term, member, lease, database, sender }: Serving): Promise<void> {
  sender.close();
  term.fail(new Unavailable("The term ended"));
  // Where the database still answers, nobody has to wait until this member may answer nothing any more.
  await endMember(database, lease.term).catch(() => {});
  await member.close().catch(() => {});
  await lease.close().catch(() => {});
  await database.close().catch(() => {});
}
