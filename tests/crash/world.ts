// The world of one campaign: a store, the processes on it and all clients, from the first start to the last audit. Two
// apps live in it: that of the load, whose every call is compared with the tables, and that of the storm with its
// merges and credits. What goes wrong is collected as faults in words.

import { Random } from "../model/random.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import type { Database } from "../../src/storage/database.ts";
import { auditAnswers, auditTables, auditUsage } from "./audit.ts";
import { Cable } from "./cable.ts";
import { Load } from "./load.ts";
import { foreignRows, sharedWorkspaces } from "./foreign_rows.ts";
import { type ClusterNode, ownersOf, termOf, untilSpread } from "./nodes.ts";
import type { OwnServer } from "./own_server.ts";
import { pause, type Program, until } from "./program.ts";
import { readiness, Stage, untilReady } from "./stage.ts";
import { Storm } from "./storm.ts";
import { copyMigratedStore } from "../support/kept_stores.ts";

/** A process serves again by itself within this time of the database's return. */
export const BACK_MS = 180_000;
/** A stopping process has ended by then. */
const EXIT_MS = 60_000;
/** The embedded store is made in a few seconds, unless the machine has other things to do. */
const FIRST_START_MS = 180_000;
const FIRST_USERS = 8;
const USERS_A_ROUND = 2;
const MERGE_SHARE = 0.03;
/** The longest pauses of a client of the load, and of the storm, between two calls. */
const PACES = { hard: [12, 60], calm: [240, 240] } as const;
/** The feed is looked at rarely in some worlds, so that the journal grows between drains. */
const LAZY = { feedShare: 0.01, readPauseMs: 5_000 };
/** Commits of some worlds wait this long, so that more happens in their middle. */
const COMMIT_DELAY_US = 8_000;
const STDERR_SHOWN = 3_000;

/** How a world is made. */
export interface WorldOptions {
  readonly random: Random;
  /** The server, or null for the embedded store. */
  readonly server: string | null;
  /** Set where the server may be killed. */
  readonly ownServer: OwnServer | null;
  /** How many processes serve at a time. */
  readonly nodes: number;
  /** Whether the processes reach each database through a cable that can be cut. */
  readonly isWired: boolean;
  /** How many databases the processes have, all on one server. */
  readonly databases: number;
  /** Whether the first start makes the tables. */
  readonly isEmpty: boolean;
  /** How hard the clients press. */
  readonly pace: keyof typeof PACES;
}

/** A store, or several databases, with everything that goes on around it. */
export class World implements AsyncDisposable {
  /** One for each database. All have the same processes, which are listed in the first. */
  readonly stages: readonly Stage[];
  readonly random: Random;
  readonly ownServer: OwnServer | null;
  /** Whether each process reaches the database by a cable of its own. */
  readonly isWired: boolean;
  /** Whether nodes reach each other by cables. */
  readonly isRelayed: boolean;
  /** The processes that serve, or are about to. */
  readonly nodes: ClusterNode[] = [];
  readonly storm = new Storm(true);
  /** The clients of each database. */
  loads: readonly Load[] = [];
  /** How long the last start took. */
  startMs = 1_000;
  /** What was found wrong beside the audits. */
  readonly faults: string[] = [];
  readonly #cables = new Map<Program, readonly Cable[]>();
  /** By term: what leads to its channel's address. */
  readonly #relays = new Map<number, Cable>();
  readonly #size: number;
  readonly #pace: readonly [loadMs: number, stormMs: number];
  #blowing: Promise<void> | null = null;
  /** The place of the database that the next fault is done to. */
  #struck = 0;

  private constructor(stages: readonly Stage[], { random, ownServer, isWired, nodes, pace }: WorldOptions) {
    this.stages = stages;
    this.random = random;
    this.ownServer = ownServer;
    this.isWired = isWired;
    this.isRelayed = nodes > 1 && stages.length === 1 && random.chance(0.5);
    this.#size = nodes;
    this.#pace = PACES[pace];
  }

  /** Makes an empty store; nothing runs on it yet. */
  static async open(options: WorldOptions): Promise<World> {
    const stages: Stage[] = [];
    for (let place = 1; place <= options.databases; place++) {
      const stage = await Stage.open(options.server, options.isEmpty);
      if (options.databases > 1) stage.storeName = `eu${place}`;
      stages.push(stage);
    }
    const world = new World(stages, options);
    if (options.server !== null && options.random.chance(0.3)) await world.#slowCommits();
    return world;
  }

  /** The database that a fault is done to. */
  get stage(): Stage {
    return this.stages[this.#struck] as Stage;
  }

  /** The other databases. */
  get #beside(): readonly Stage[] {
    return this.stages.filter((stage) => stage !== this.stage);
  }

  /** Its clients. */
  get load(): Load {
    return this.loads[this.#struck] as Load;
  }

  /** Chooses the database that the next fault is done to. */
  aim(): void {
    if (this.stages.length > 1) this.#struck = this.random.whole(0, this.stages.length - 1);
  }

  /** How many calls to other databases than the struck one had another outcome than an answer. */
  get failedBeside(): number {
    const others = this.loads.filter((load) => load !== this.load);
    return others.flatMap(({ record }) => [...record.answers]).reduce(
      (sum, [outcome, count]) => typeof outcome === "number" && outcome < 500 ? sum : sum + count,
      0,
    );
  }

  /** The numbers under which the processes serve other databases than the struck one. A process that lost its lease gets another. */
  get termsBeside(): string {
    return this.#beside.flatMap(({ storeName }) => this.nodes.map((node) => termOf(node, storeName))).join();
  }

  /** Waits until no cell of another database than the struck one is about to move. */
  async untilCalmBeside(): Promise<void> {
    await Promise.all(this.#beside.map((stage) => untilSpread(stage, this.nodes)));
  }

  /** What the clients know, in few words. */
  summary(): string {
    return this.loads.map(({ record }) => record.summary()).join("; ");
  }

  /** Keeps the store for an investigation; returns its place. */
  keep(): string {
    for (const stage of this.stages) stage.isKept = true;
    if (this.stage.isEmbedded) return this.stage.folder;
    const urls = this.stages.map(({ server: { url } }) => url);
    if (this.ownServer === null) return urls.join(" and ");
    this.ownServer.isKept = true;
    return `${urls.map((url) => new URL(url).pathname.slice(1)).join(" and ")} in ${this.ownServer.folder}`;
  }

  /** The last output of the processes. */
  get lastWords(): string {
    return this.#programs.slice(-1 - this.#size).map(({ stderr }) => stderr.slice(-STDERR_SHOWN)).join(
      "\n--\n",
    );
  }

  get #programs(): readonly Program[] {
    return (this.stages[0] as Stage).programs;
  }

  /** Starts the first processes, and makes apps and users. */
  async begin(): Promise<void> {
    if (this.stage.isEmbedded && this.#programs.length === 0) await copyMigratedStore(this.stage.folder);
    while (this.nodes.length < this.#size) await this.start();
    for (const stage of this.stages) await stage.populate(this.anyone.origin);
    this.loads = this.stages.map(({ secretKey }) => new Load(this.anyone.origin, secretKey));
    for (const load of this.loads) load.pauseMaxMs = this.#pace[0];
    this.#aim();
    await this.storm.populate(FIRST_USERS);
    if (!this.random.chance(0.5)) return;
    for (const load of this.loads) load.feedShare = LAZY.feedShare;
    this.storm.readPauseMs = LAZY.readPauseMs;
  }

  /** One of the processes. */
  get anyone(): ClusterNode {
    return this.random.pick(this.nodes);
  }

  /** Starts a process that may fail before it serves. */
  startOne(): Program {
    const [first] = this.stages as [Stage];
    if (first.isEmbedded) return first.start();
    const cables = this.isWired ? this.stages.map(({ server }) => new Cable(server.url)) : [];
    const urls = this.stages.map(({ server: { url } }, place) => cables[place]?.through(url) ?? url);
    const list = this.stages.map(({ storeName }, place) => `${storeName}=${urls[place]}`).join(",");
    const program = first.start(
      urls.length === 1
        ? { DATABASE_URL: urls[0] as string }
        : { DATABASE_URL: "", HOLDFAST_DATABASES: list },
    );
    this.#cables.set(program, cables);
    return program;
  }

  /** The cables of all processes, or of one, to the struck database. */
  someCables(): Cable[] {
    const cables = this.nodes.flatMap(({ program }) => this.#cables.get(program)?.[this.#struck] ?? []);
    return this.random.chance(0.5) ? cables : [this.random.pick(cables)];
  }

  /** Starts one process more and waits until everybody serves; calls may reach it before. */
  async start(): Promise<ClusterNode> {
    // Without a listener the calls would only count how fast they are refused.
    if (this.nodes.length === 0) await this.stopLoad();
    const program = this.startOne();
    const node = { program, origin: await program.origin(FIRST_START_MS) };
    const isFirst = this.nodes.push(node) === 1;
    this.#aim();
    if (isFirst && this.#blowing !== null && this.random.chance(0.5)) this.#startLoad();
    await this.back();
    this.startMs = performance.now() - program.startedAt;
    if (this.isRelayed) await this.#relay();
    return node;
  }

  /** The cables between nodes that carry something. */
  get channels(): Cable[] {
    return [...this.#relays.values()].filter(({ isUsed }) => isUsed);
  }

  /** Publishes another address of each node, which leads to it through a cable. Nodes that join later dial that. */
  async #relay(): Promise<void> {
    const { look } = this.stage;
    const rows = await look.query<{ term: number; address: string }>(
      "select term, address from members where ended_at is null and address is not null",
    );
    for (const { term, address } of rows) {
      if (this.#relays.has(term)) continue;
      const relay = new Cable(`tcp://${address}`);
      this.#relays.set(term, relay);
      await look.query("update members set address = $2 where term = $1::bigint", [
        term,
        `127.0.0.1:${relay.port}`,
      ]);
    }
  }

  /** Has another process join, and waits until cells are moving to it: five seconds after it joined. */
  async startMoves(): Promise<void> {
    await this.start();
    await goOn(this, 4_000, 5_500);
  }

  /** Kills a process; clients go to the others. */
  async kill(node: ClusterNode): Promise<void> {
    const killed = node.program.kill();
    this.drop(node);
    await killed;
  }

  /** Kills a process and starts another. */
  async replace(node: ClusterNode): Promise<void> {
    await this.kill(node);
    await this.start();
  }

  /** Sends no more calls to a process. */
  drop(node: ClusterNode): void {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    this.#aim();
  }

  /** Sends calls to a process again. */
  add(node: ClusterNode): void {
    this.nodes.push(node);
    this.#aim();
  }

  #aim(): void {
    if (this.nodes.length === 0) return;
    const origins = this.nodes.map(({ origin }) => origin);
    this.storm.origins = origins;
    for (const load of this.loads) load.origins = origins;
  }

  /** Waits until every process serves, and every cell has one of them as its owner, by itself. */
  async back(): Promise<void> {
    const deaths = this.nodes.map(({ program }) =>
      program.ended.then(({ code, signal }): never => {
        throw new Error(`The process ended by itself with ${signal ?? code}`);
      })
    );
    const ready = Promise.all(this.nodes.map(({ origin }) => untilReady(origin, BACK_MS)));
    await Promise.race([ready.then(() => this.untilOwned()), ...deaths]);
  }

  /** Waits until every cell has a living owner. */
  async untilOwned(): Promise<void> {
    if (this.stage.isEmbedded) return;
    await until("every cell has a living owner", BACK_MS, async () => {
      try {
        const isOwned = await Promise.all(this.stages.map(async (stage) => {
          const terms = new Set<number | null>(this.nodes.map((node) => termOf(node, stage.storeName)));
          return (await ownersOf(stage)).every((term) => terms.has(term));
        }));
        return isOwned.includes(false) ? null : true;
      } catch {
        // The look itself may have met the fault.
        return null;
      }
    });
  }

  /** Starts all clients. */
  async blow(): Promise<void> {
    await this.storm.addUsers(USERS_A_ROUND);
    this.#startLoad();
    this.storm.isOver = false;
    this.#blowing = this.storm.blow(MERGE_SHARE, this.#pace[1]);
    // A later wait reports its failure.
    this.#blowing.catch(() => {});
  }

  #startLoad(): void {
    for (const load of this.loads) load.start();
  }

  /** Ends the clients of every database, but not the storm. */
  async stopLoad(): Promise<void> {
    await Promise.all(this.loads.map((load) => load.stop()));
  }

  /** Ends all clients; calls with a key are sent until they are answered. */
  async calm(): Promise<void> {
    await this.stopLoad();
    this.storm.isOver = true;
    const { origin } = this.anyone;
    await Promise.all([...this.loads.map((load) => load.finish(origin)), this.#blowing]);
    this.#blowing = null;
  }

  /** Compares what the clients know with what the service answers, and where it may be looked at, with its tables. */
  async audit(): Promise<string[]> {
    const { origin } = this.anyone;
    const faults = [...this.faults];
    for (const [place, { secretKey }] of this.stages.entries()) {
      const load = this.loads[place] as Load;
      faults.push(...await inWords("feed and holds", () => auditAnswers(load, origin, secretKey)));
    }
    faults.push(
      ...await inWords("storm", async () => {
        await this.storm.audit();
        return [];
      }),
    );
    if (this.stage.isEmbedded) return faults;
    for (const stage of this.stages) {
      const { secretKey } = stage;
      faults.push(...await withTables(stage, (database) => auditUsage(database, origin, secretKey)));
    }
    return [...faults, ...await this.auditTables()];
  }

  /** Compares what the clients know with the tables; on the embedded store the process must have ended. */
  async auditTables(): Promise<string[]> {
    const all: string[] = [];
    const workspaces: string[][] = [];
    for (const [place, stage] of this.stages.entries()) {
      const found = await withTables(stage, async (database) => {
        const faults = await auditTables((this.loads[place] as Load).record, database);
        const { undrainedBatches } = await reconcile(database, ({ userId, text }) => {
          faults.push(`${userId}: ${text}`);
        });
        if (undrainedBatches > 0) faults.push(`${undrainedBatches} batches are left in the journal`);
        if (this.stages.length === 1) return faults;
        const rows = await database.query<{ id: string }>("select id from workspaces");
        workspaces.push(rows.map(({ id }) => id));
        return [...faults, ...await foreignRows(database)];
      });
      all.push(...found.map((text) => stage.storeName === null ? text : `${stage.storeName}: ${text}`));
    }
    return [...all, ...sharedWorkspaces(workspaces)];
  }

  /**
   * Ends a process in good order. Clients act like a load balancer: they send nothing more to a process that is about
   * to end, since a call that meets the closing of the port is cut off.
   */
  async stop(node: ClusterNode, signal: "SIGTERM" | "SIGINT" = "SIGTERM"): Promise<void> {
    const { program, origin } = node;
    program.signal(signal);
    const isAlone = this.nodes.length === 1;
    if (!isAlone) {
      await until("it says that it ends", EXIT_MS, async () => await readiness(origin) !== 200 || null);
      this.drop(node);
    }
    const { code } = await program.exit(EXIT_MS);
    if (isAlone) this.drop(node);
    if (code !== 0) this.faults.push(`A stop by ${signal} ended with status ${code}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopLoad();
    this.storm.isOver = true;
    for (const stage of this.stages) await stage[Symbol.asyncDispose]();
    await Promise.all(
      [...[...this.#cables.values()].flat(), ...this.#relays.values()].map((cable) =>
        cable[Symbol.asyncDispose]()
      ),
    );
  }

  async #slowCommits(): Promise<void> {
    for (const { server: { admin, name } } of this.stages) {
      await admin.script(
        `alter database ${name} set commit_delay = ${COMMIT_DELAY_US}; alter database ${name} set commit_siblings = 0`,
      );
    }
  }
}

function withTables(stage: Stage, look: (database: Database) => Promise<string[]>): Promise<string[]> {
  return stage.withDatabase((database) => inWords("tables", () => look(database)));
}

/** The faults that an audit found, including a failure of the audit itself. */
async function inWords(what: string, audit: () => Promise<string[]>): Promise<string[]> {
  try {
    return await audit();
  } catch (error) {
    return [`${what}: ${error instanceof Error ? error.message : error}`];
  }
}

/** Lets the clients go on for a random while. */
export function goOn({ random }: World, fromMs: number, toMs: number): Promise<void> {
  return pause(random.whole(fromMs, toMs));
}
