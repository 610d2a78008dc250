// One run: a world made of a seed, a phase in which everything goes wrong that may, a phase in which nothing does any
// more, and the checkers' verdict. The same seed and number of steps give the same run, event by event.

import { createHash } from "node:crypto";
import { catalogs } from "../model/catalogs.ts";
import { Random } from "../model/random.ts";
import { answersChecker } from "./checks/answers.ts";
import { booksChecker } from "./checks/books.ts";
import { capsChecker } from "./checks/caps.ts";
import { clockChecker } from "./checks/clock.ts";
import { grantsChecker } from "./checks/grants.ts";
import { holdsChecker } from "./checks/holds.ts";
import { linearChecker } from "./checks/linear.ts";
import { livenessChecker } from "./checks/liveness.ts";
import { tablesChecker } from "./checks/tables.ts";
import { type ClientWorld, perform } from "./clients.ts";
import { type Message, Server } from "./database/server.ts";
import { Faults } from "./faults.ts";
import { type Call, isOfModel, type SimRequest } from "./history.ts";
import { SimProcess } from "./process.ts";
import { Recorder } from "./recorder.ts";
import { type Caps, seedApp } from "./seeding.ts";
import type { Note } from "./story.ts";
import { type Owner, VirtualTime, WORLD } from "./time.ts";
import { Traffic } from "./traffic.ts";
import { inProcess, scheduleTrouble, sweep, type TroubleWorld } from "./troubles.ts";
import { type Violation, Watch } from "./watch.ts";

const STARTS_AT = Date.UTC(2026, 0, 31, 10, 30, 0, 250);
const DAY_MS = 24 * 3_600_000;

/** How bad a world is: now and then a quiet one, in which only the order of things differs. */
const PLANS = [
  { message: 0, slow: 0.01, network: 0.01, troubleMs: 4_000, paceMs: 30 },
  { message: 0.002, slow: 0.02, network: 0.02, troubleMs: 1_000, paceMs: 60 },
  { message: 0.002, slow: 0.02, network: 0.02, troubleMs: 4_000, paceMs: 300 },
  { message: 0.01, slow: 0.05, network: 0.05, troubleMs: 500, paceMs: 60 },
];

/** Of each six seeds two are of test mode, and two have caps, one in each mode: so low that a month may reach them. */
function capsOf(seed: number): Caps {
  const mode = seed % 6 >= 4 ? "test" : "live";
  const isCapped = seed % 6 === 3 || seed % 6 === 5;
  return {
    mode,
    operationCap: isCapped ? 20 + seed % 7 * 5 : null,
    testCreditBalanceCap: isCapped && mode === "test" ? 4 + seed % 5 : null,
  };
}

/** What a run is made of. */
export interface RunOptions {
  readonly seed: number;
  readonly steps: number;
}

/** What a run was. */
export interface Outcome {
  readonly calls: readonly Call[];
  readonly notes: readonly Note[];
  readonly faults: ReadonlyMap<string, number>;
  readonly virtualMs: number;
  /** How far the calendar went. */
  readonly calendarMs: number;
  readonly events: number;
  /** A hash of everything that happened. */
  readonly trace: string;
  readonly violation: Violation | null;
}

/** Runs a simulation. */
export async function simulate(options: RunOptions): Promise<Outcome> {
  return await new Simulation(options).run();
}

class Simulation {
  readonly #options: RunOptions;
  readonly #random: Random;
  readonly #time: VirtualTime;
  readonly #recorder: Recorder;
  readonly #world: ClientWorld & TroubleWorld;
  readonly #watch: Watch;
  readonly #traffic: Traffic;
  readonly #hash = createHash("sha256");
  readonly #notes: Note[] = [];
  readonly #plan: (typeof PLANS)[number];
  readonly #caps: Caps;
  #events = 0;
  #arrived = 0;
  #open = 0;
  /** How far the test clock is ahead of the calendar, as far as clients have heard. */
  #aheadMs = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const random = this.#random = new Random(options.seed);
    const catalog = catalogs[random.pick(["example", "tiny", "ladder"] as const)];
    const plan = random.pick(PLANS);
    const time = this.#time = new VirtualTime(STARTS_AT, random);
    const recorder = this.#recorder = new Recorder(time);
    const faults = new Faults(random, plan, time, (kind) => this.#note(kind));
    const server: Server = new Server(time, { onAppend: (seq, payload) => recorder.durable(seq, payload) });
    const caps = this.#caps = capsOf(options.seed);
    seedApp(server.tables, catalog, STARTS_AT, caps);
    const onSend = (message: Message, owner: Owner) => recorder.sees(message, owner);
    const line = { time, server, faults, onSend };
    const processes = ["a", "b"].map((name) => new SimProcess(name, line, recorder, caps.mode));
    const calls: Call[] = [];
    this.#world = { time, random, faults, recorder, server, processes, calls };
    const checkers = [
      booksChecker(),
      holdsChecker(),
      grantsChecker(),
      answersChecker(),
      tablesChecker(),
      livenessChecker(),
      capsChecker(),
      clockChecker(),
      linearChecker(),
    ];
    this.#watch = new Watch(checkers, catalog, caps, server, calls);
    recorder.onDurable = (batch, payload) => this.#watch.take(batch, payload);
    this.#traffic = new Traffic(random, catalog, caps.operationCap === null);
    this.#plan = plan;
  }

  async run(): Promise<Outcome> {
    const undo = [this.#time.install(), this.#recorder.install(), this.#listen()];
    try {
      for (const process of this.#world.processes) process.start();
      this.#scheduleArrival();
      scheduleTrouble(this.#world, this.#plan.troubleMs);
      await this.#until(() => this.#arrived >= this.#options.steps || this.#watch.violation !== null);
      if (this.#watch.violation === null) await this.#calmDown();
      return this.#outcome();
    } finally {
      for (const each of undo.reverse()) each();
    }
  }

  /** Lets time pass until something is the case; whether it became so within a limit. */
  async #until(isDone: () => boolean, limitMs = Infinity): Promise<boolean> {
    const end = this.#time.now + limitMs;
    while (!isDone() && this.#time.next <= end) {
      await this.#time.step();
      this.#events += 1;
      this.#hash.update(`${this.#time.now}\n`);
    }
    return isDone();
  }

  /** Steps are arrivals: each is the next request, and now and then a leap of the calendar. */
  #scheduleArrival(): void {
    if (this.#arrived >= this.#options.steps) return;
    // Calls come in bursts, and those about users who are being merged come at once.
    const isBurst = this.#traffic.isChasing || this.#random.chance(0.3);
    this.#time.after(this.#random.next() * (isBurst ? 4 : 2 * this.#plan.paceMs), WORLD, () => {
      if (!isBurst) this.#leap();
      this.#arrived += 1;
      this.#ask(this.#traffic.next(this.#clock()));
      this.#scheduleArrival();
    });
  }

  /** The clock of the mode in use, as far as clients have heard. */
  #clock(): number {
    return this.#time.calendar() + this.#aheadMs;
  }

  /** Time leaps ahead; in test mode a client may move the test clock in its place. */
  #leap(): void {
    const byMs = this.#traffic.leap(this.#clock());
    if (byMs > 0 && this.#caps.mode === "test" && this.#random.chance(0.5)) {
      this.#ask({ op: "testClock", input: { advanceSeconds: byMs / 1000 } });
    } else this.#time.jump(byMs);
  }

  #ask(request: SimRequest): void {
    this.#open += 1;
    // Now and then a client takes a key that another call has.
    const other = this.#random.chance(0.02) ? this.#world.calls.at(-this.#random.whole(1, 10)) : undefined;
    void perform(this.#world, request, other?.key ?? null).then((call) => {
      this.#open -= 1;
      this.#hash.update(`${call.no} ${this.#time.now} ${call.answer?.status} ${call.answer?.body}\n`);
      if (call.answer === null) return;
      const { model } = call.answer;
      if (isOfModel(request)) return this.#traffic.observe(request, model);
      const toldMs = Date.parse(String(model.data?.["now"]));
      if (toldMs > this.#clock()) this.#aheadMs = toldMs - this.#time.calendar();
    });
  }

  /** Faults stop; everything that was begun comes to its end, and is then read once more. */
  async #calmDown(): Promise<void> {
    this.#world.faults.isQuiet = true;
    if (!await this.#until(() => this.#open === 0, 300_000)) {
      return this.#fail(`${this.#open} calls have no answer`);
    }
    this.#time.jump(45 * DAY_MS);
    if (!await this.#sweepAll()) return this.#fail("no sweep comes to its end");
    for (const userId of this.#traffic.ids) {
      for (const op of ["usage", "customer", "users"] as const) this.#ask({ op, input: { userId } });
      this.#ask({ op: "credits", input: { userId, includeExpired: "true" } });
      this.#ask({ op: "ledger", input: { userId, limit: 500 } });
      this.#ask({ op: "events", input: { userId, limit: 100 } });
      if (!await this.#until(() => this.#open === 0, 60_000)) return this.#fail("reads have no answer");
    }
    // A call that its client had given up may have arrived since: what it holds lapses as well.
    this.#time.jump(2 * DAY_MS);
    if (!await this.#sweepAll()) return this.#fail("no sweep comes to its end");
    this.#watch.end();
  }

  /** Runs every sweep of whoever serves, twice: the second finds nothing new. */
  async #sweepAll(): Promise<boolean> {
    let swept = 0;
    let isAsking = false;
    return await this.#until(() => {
      const writer = this.#world.processes.find(({ serving }) => serving !== null);
      if (writer !== undefined && !isAsking && swept < 2) {
        isAsking = true;
        inProcess(this.#world, writer, () =>
          void sweep(writer).then(async (hasEnded) => {
            await writer.serving?.term.flush();
            isAsking = false;
            if (hasEnded) swept += 1;
          }));
      }
      return swept === 2;
    }, 120_000);
  }

  #note(text: string): void {
    this.#notes.push({ order: ++this.#recorder.tick, text: `${this.#time.now.toFixed(0)} ms ${text}` });
  }

  #fail(message: string): void {
    this.#watch.report("liveness", message);
  }

  /** The product's log goes nowhere; what it calls an error is one. */
  #listen(): () => void {
    const { writeSync } = Deno.stderr;
    const decoder = new TextDecoder();
    Deno.stderr.writeSync = (bytes) => {
      const line = decoder.decode(bytes);
      const { level, message, error = "" } = JSON.parse(line) as Record<string, string>;
      if (level === "error") this.#watch.report("no error", line);
      this.#note(`${this.#time.current.name}: ${message} ${error}`);
      return bytes.length;
    };
    return () => {
      Deno.stderr.writeSync = writeSync;
    };
  }

  #outcome(): Outcome {
    return {
      calls: this.#world.calls,
      notes: this.#notes,
      faults: this.#world.faults.counts,
      virtualMs: this.#time.now,
      calendarMs: this.#time.calendar() - STARTS_AT,
      events: this.#events,
      trace: this.#hash.digest("hex"),
      violation: this.#watch.violation,
    };
  }
}
