// A campaign: worlds one after another, each with rounds of load, a fault, and an audit, until enough faults were done or
// the time is over. The first audit that finds something ends it, with the story of that world.

import { Random } from "../model/random.ts";
import { type Fault, killFirstStarts, type Need, PROCESS_FAULTS } from "./faults.ts";
import { OwnServer } from "./own_server.ts";
import { SERVER_FAULTS } from "./server_faults.ts";
import { testServerUrl } from "../support/test_store.ts";
import { goOn, World, type WorldOptions } from "./world.ts";

/** Every kind that can be asked for. A first start has no service to disturb and so no strike of its own. */
export const FAULTS: readonly Fault[] = [...PROCESS_FAULTS, ...SERVER_FAULTS];
export const FIRST_START = "first-start";
export const FIRST_START_TEXT = "SIGKILL during the first starts, which make the store and its tables";

/** How many processes serve a world on a server. */
const MEMBERS = [1, 2, 3, 3];

/** How often cells move to a newcomer when a fault comes. */
const MOVING_SHARE = 0.35;

export type StoreName = "embedded" | "postgres";

/** The options of a campaign. */
export interface CampaignOptions {
  readonly store: StoreName;
  /** The server of the store `postgres`; null for one of our own, which may be killed. */
  readonly server: string | null;
  readonly faults: number;
  readonly untilMs: number;
  readonly kinds: ReadonlySet<string>;
  readonly seed: number;
  /** How many processes serve at a time on a server; left out: another number in each world. */
  readonly members?: number;
  /** Whether a cable that can be cut leads to the server; left out: in some worlds. */
  readonly isWired?: boolean;
  /** How many databases the processes have, all on one server; left out: one. */
  readonly databases?: number;
  /** How hard the clients press; left out: as hard as they can. */
  readonly pace?: WorldOptions["pace"];
  readonly progress: (text: string) => void;
}

/** What was done. */
export interface CampaignReport {
  readonly store: StoreName;
  readonly seed: number;
  faults: number;
  rounds: number;
  worlds: number;
  /** Rounds whose moment never came; they are no faults. */
  missed: number;
  /** Rounds in which cells were moving to a newcomer when the fault came. */
  amidMoves: number;
  audits: number;
  /** Faults by kind. */
  readonly byKind: Record<string, number>;
  /** The longest time from a strike to the service's return, by kind. */
  readonly longestMs: Record<string, number>;
  /** Outcomes of the load's calls: statuses, and what broke off. */
  readonly outcomes: Record<string, number>;
  /** Calls and merges of the storm. */
  stormCalls: number;
  merges: number;
  readonly seconds: number;
  /** The story of a failure; null when every audit found everything in its place. */
  failure: Failure | null;
}

/** What an audit found, and what had been done until then. */
interface Failure {
  readonly found: readonly string[];
  readonly done: readonly string[];
  readonly lastWords: string;
  readonly kept: string;
}

const ROUNDS_A_WORLD = 10;
/** The embedded store can be looked into only while its process is stopped. */
const TABLES_EVERY = 4;
const LOAD_MS = [80, 900] as const;
const AFTER_MS = [50, 300] as const;
const FOUND_SHOWN = 20;

/** Runs a campaign to its end. */
export async function runCampaign(options: CampaignOptions, stop: AbortSignal): Promise<CampaignReport> {
  const ownServer = options.store === "postgres" && options.server === null ? await OwnServer.open() : null;
  try {
    if (options.store === "postgres" && options.server === null && ownServer === null) {
      throw new Error("PostgreSQL's programs are not installed here: name a server with --server");
    }
    const isServer = options.store === "postgres";
    const hasNodes = isServer && options.members !== 1;
    const has = hasOf({
      isServer,
      isWired: isServer,
      ownServer,
      hasNodes,
      isRelayed: hasNodes,
    });
    const isPossible = options.kinds.has(FIRST_START) ||
      FAULTS.some(({ kind, needs }) => options.kinds.has(kind) && has(needs));
    if (!isPossible) throw new Error(`None of these kinds can happen on the store "${options.store}"`);
    return await new Campaign(options, ownServer, stop).run();
  } finally {
    await ownServer?.[Symbol.asyncDispose]();
  }
}

class Campaign {
  readonly #options: CampaignOptions;
  readonly #ownServer: OwnServer | null;
  readonly #stop: AbortSignal;
  readonly #random: Random;
  readonly #startedAt = performance.now();
  readonly #report: CampaignReport;
  #deck: Fault[] = [];

  constructor(options: CampaignOptions, ownServer: OwnServer | null, stop: AbortSignal) {
    this.#options = options;
    this.#ownServer = ownServer;
    this.#stop = stop;
    this.#random = new Random(options.seed);
    const startedAt = this.#startedAt;
    this.#report = {
      store: options.store,
      seed: options.seed,
      faults: 0,
      rounds: 0,
      worlds: 0,
      missed: 0,
      amidMoves: 0,
      audits: 0,
      byKind: {},
      longestMs: {},
      outcomes: {},
      stormCalls: 0,
      merges: 0,
      get seconds() {
        return Math.round((performance.now() - startedAt) / 1_000);
      },
      failure: null,
    };
  }

  async run(): Promise<CampaignReport> {
    while (!this.#isOver()) {
      const server = this.#options.store === "embedded" ? null : this.#ownServer?.url ?? this.#options.server;
      const world = await World.open({
        random: this.#random,
        server,
        isEmpty: this.#options.kinds.has(FIRST_START) || server !== testServerUrl(),
        ownServer: this.#ownServer,
        nodes: this.#nodesOf(),
        isWired: this.#options.store === "postgres" && this.#isWired(),
        databases: this.#options.databases ?? 1,
        pace: this.#options.pace ?? "hard",
      });
      this.#report.worlds++;
      const done: string[] = [];
      try {
        await this.#live(world, done);
      } catch (error) {
        const found = [error instanceof Error ? error.stack ?? error.message : String(error)];
        if (!this.#stop.aborted) this.#fail(world, done, found);
      } finally {
        this.#add(world);
        await world[Symbol.asyncDispose]();
      }
    }
    return this.#report;
  }

  #nodesOf(): number {
    const { store, members, kinds } = this.#options;
    if (store === "embedded") return 1;
    const wanted = FAULTS.filter(({ kind }) => kinds.has(kind));
    const least = wanted.length > 0 && wanted.every(({ needs }) => needs === "nodes") ? 2 : 1;
    return members ?? Math.max(least, this.#random.pick(MEMBERS));
  }

  /** Some worlds have a cable, and all of them where no other kind is wanted. */
  #isWired(): boolean {
    const wanted = FAULTS.filter(({ kind }) => this.#options.kinds.has(kind));
    const isCable = (fault: Fault) => fault.needs === "cable";
    return this.#options.isWired ??
      (wanted.some(isCable) && (wanted.every(isCable) || this.#random.chance(0.4)));
  }

  #isOver(): boolean {
    return this.#stop.aborted || this.#report.failure !== null ||
      this.#report.faults >= this.#options.faults || performance.now() >= this.#options.untilMs;
  }

  /** The rounds of one world. */
  async #live(world: World, done: string[]): Promise<void> {
    if (this.#options.kinds.has(FIRST_START) && this.#random.chance(0.5)) {
      const kills = await killFirstStarts(world);
      this.#count(FIRST_START, kills);
      done.push(`${FIRST_START} ${kills}`);
    }
    await world.begin();
    for (let round = 1; round <= ROUNDS_A_WORLD && !this.#isOver(); round++) {
      const fault = this.#draw(world);
      if (fault === null) return;
      const found = await this.#round(world, fault, done);
      if (world.stage.isEmbedded && (round % TABLES_EVERY === 0 || round === ROUNDS_A_WORLD)) {
        found.push(...await this.#lookInside(world));
      }
      if (found.length > 0) return this.#fail(world, done, found);
    }
  }

  async #round(world: World, fault: Fault, done: string[]): Promise<string[]> {
    world.aim();
    const isMoving = world.nodes.length > 1 && this.#random.chance(MOVING_SHARE);
    const mayTouchOthers = fault.isOfDatabase !== true || isMoving;
    // Before the clients begin, who would slow it down. No process joins or leaves between it and the fault.
    if (!mayTouchOthers) await world.untilCalmBeside();
    await world.blow();
    await goOn(world, ...LOAD_MS);
    if (isMoving) await world.startMoves();
    const struckAt = performance.now();
    const { failedBeside, termsBeside } = world;
    const when = `${Math.round(struckAt - this.#startedAt)} ms`;
    const where = world.stage.storeName === null ? "" : ` to ${world.stage.storeName}`;
    done.push(`${fault.kind}${where} at ${when}${isMoving ? " while cells moved" : ""}`);
    const faults = await fault.strike(world);
    const backMs = Math.round(performance.now() - struckAt);
    const failed = world.failedBeside - failedBeside;
    // A calm campaign has other tests beside it, which may keep a process from its lease.
    const isStarved = this.#options.pace === "calm" && world.termsBeside !== termsBeside;
    if (!mayTouchOthers && failed > 0 && !isStarved) {
      world.faults.push(`${failed} calls failed that were to another database than ${world.stage.storeName}`);
    }
    if (isMoving) {
      this.#report.amidMoves++;
      await world.stop(world.anyone);
    }
    await goOn(world, ...AFTER_MS);
    await world.back();
    await world.calm();
    const found = await world.audit();
    this.#report.rounds++;
    this.#report.audits++;
    if (faults === null) this.#report.missed++;
    else this.#count(fault.kind, faults);
    const longest = this.#report.longestMs;
    longest[fault.kind] = Math.max(longest[fault.kind] ?? 0, backMs);
    const outcome = faults === null ? "the moment never came" : `back after ${backMs} ms`;
    const { store, faults: wanted } = this.#options;
    this.#options.progress(
      `${store} ${this.#report.faults}/${wanted} ${fault.kind}: ${outcome}; ${world.summary()}`,
    );
    return found;
  }

  /** Ends the process in good order, looks into the folder, and starts another one. */
  async #lookInside(world: World): Promise<string[]> {
    await world.stop(world.anyone);
    const found = [...world.faults, ...await world.auditTables()];
    this.#report.audits++;
    await world.start();
    return found;
  }

  /** The next kind: each comes as often as its weight says before any comes again. */
  #draw(world: World): Fault | null {
    const { ownServer, isWired, isRelayed } = world;
    const isServer = !world.stage.isEmbedded;
    const has = hasOf({ isServer, isWired, ownServer, hasNodes: world.nodes.length > 1, isRelayed });
    const isWanted = ({ kind, needs }: Fault) => this.#options.kinds.has(kind) && has(needs);
    if (!this.#deck.some(isWanted)) {
      // Also what only some worlds of this store have, which waits in the deck for such a world.
      const hasNodes = isServer && this.#options.members !== 1;
      const mayCome = hasOf({ isServer, isWired: isServer, ownServer, hasNodes, isRelayed: hasNodes });
      const { kinds } = this.#options;
      const all = FAULTS.filter(({ kind, needs }) => kinds.has(kind) && mayCome(needs));
      if (!all.some(isWanted)) return null;
      this.#deck.push(...all.flatMap((fault) => Array(fault.weight).fill(fault)));
    }
    const fault = this.#random.pick(this.#deck.filter(isWanted));
    this.#deck.splice(this.#deck.indexOf(fault), 1);
    return fault;
  }

  #count(kind: string, faults: number): void {
    this.#report.byKind[kind] = (this.#report.byKind[kind] ?? 0) + faults;
    this.#report.faults += faults;
  }

  #add(world: World): void {
    const { outcomes } = this.#report;
    for (const [outcome, count] of world.loads.flatMap(({ record }) => [...record.answers])) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
    }
    this.#report.stormCalls += world.storm.calls;
    this.#report.merges += world.storm.merges.length;
  }

  #fail(world: World, done: readonly string[], found: readonly string[]): void {
    this.#report.failure = {
      found: found.slice(0, FOUND_SHOWN),
      done,
      lastWords: world.lastWords,
      kept: world.keep(),
    };
  }
}

/** What a world has that kinds may need. */
interface Equipment {
  readonly isServer: boolean;
  readonly isWired: boolean;
  readonly ownServer: OwnServer | null;
  readonly hasNodes: boolean;
  readonly isRelayed: boolean;
}

/** Whether there is what a kind needs. */
function hasOf({ isServer, isWired, ownServer, hasNodes, isRelayed }: Equipment): (need: Need) => boolean {
  const has: Readonly<Record<Need, boolean>> = {
    nothing: true,
    embedded: !isServer,
    server: isServer,
    cable: isWired,
    nodes: hasNodes,
    channel: isRelayed,
    "own server": ownServer !== null,
  };
  return (need) => has[need];
}
