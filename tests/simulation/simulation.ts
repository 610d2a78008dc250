// One run: a world made of a seed, a phase in which everything goes wrong that may, a phase in which nothing does any
// more, and the checkers' verdict. The same seed and number of steps give the same run, event by event.

import { createHash } from "node:crypto";
import { sweepAll } from "src/sweeps.ts";
import { passivateIdle } from "tests/actors/runtime.ts";
import { catalogs } from "tests/model/catalogs.ts";
import { Random } from "tests/model/random.ts";
import { type ClientWorld, perform } from "tests/simulation/clients.ts";
import type { Line } from "tests/simulation/database/connection.ts";
import { type Message, Server } from "tests/simulation/database/server.ts";
import { Faults } from "tests/simulation/faults.ts";
import type { Call } from "tests/simulation/history.ts";
import { SimProcess } from "tests/simulation/process.ts";
import { Recorder } from "tests/simulation/recorder.ts";
import { seedApp } from "tests/simulation/seeding.ts";
import { Traffic } from "tests/simulation/traffic.ts";
import { type Owner, VirtualTime, WORLD } from "tests/simulation/time.ts";
import { checkLinear } from "tests/simulation/checks/linear.ts";

const STARTS_AT = Date.UTC(2026, 0, 31, 10, 30, 0, 250);

/** What a run is made of. */
export interface RunOptions {
  readonly seed: number;
  readonly steps: number;
}

/** What a run was. */
export interface Outcome {
  readonly calls: readonly Call[];
  readonly faults: ReadonlyMap<string, number>;
  readonly virtualMs: number;
  readonly events: number;
  /** A hash of everything that happened. */
  readonly trace: string;
  readonly violation: Violation | null;
}

/** What a checker found. */
export interface Violation {
  readonly checker: string;
  readonly message: string;
}

/** Runs a simulation. */
export async function simulate(options: RunOptions): Promise<Outcome> {
  return await new Simulation(options).run();
}

class Simulation {
  readonly #options: RunOptions;
  readonly #random: Random;
  readonly #time = new VirtualTime(STARTS_AT);
  readonly #recorder = new Recorder(this.#time);
  readonly #faults: Faults;
  readonly #server: Server;
  readonly #processes: SimProcess[];
  readonly #world: ClientWorld;
  readonly #traffic: Traffic;
  readonly #hash = createHash("sha256");
  readonly #errors: string[] = [];
  #events = 0;
  #arrived = 0;
  #open = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    const random = this.#random = new Random(options.seed);
    const name = random.pick(["example", "tiny", "ladder"] as const);
    const time = this.#time;
    const recorder = this.#recorder;
    const plan = random.pick([
      { message: 0, slow: 0.01, network: 0.01 },
      { message: 0.002, slow: 0.02, network: 0.02 },
      { message: 0.01, slow: 0.05, network: 0.05 },
    ]);
    const faults = this.#faults = new Faults(random, plan, time);
    const server = this.#server = new Server(time, {
      onCommit: () => {},
      onAppend: (_session, seq) => recorder.durable(seq),
    });
    seedApp(server.tables, catalogs[name], STARTS_AT);
    const line: Omit<Line, "owner"> = {
      time,
      server,
      faults,
      onSend: (message, owner) => this.#noteAppend(message, owner),
    };
    this.#processes = ["a", "b"].map((each) => new SimProcess(each, line, recorder));
    this.#world = { time, random, faults, recorder, processes: this.#processes, calls: [] };
    const catalog = catalogs[name];
    this.#traffic = new Traffic(random, catalog);
  }

  async run(): Promise<Outcome> {
    const undo = [this.#time.install(this.#random), this.#recorder.install(), this.#listen()];
    try {
      for (const process of this.#processes) process.start();
      this.#scheduleArrival();
      this.#scheduleTrouble();
      await this.#until(() => this.#arrived >= this.#options.steps);
      await this.#calmDown();
      const violation = this.#errors.length > 0
        ? { checker: "no error is logged", message: this.#errors[0] as string }
        : checkLinear(this.#world.calls, this.#workloadCatalog());
      return this.#outcome(violation);
    } finally {
      for (const each of undo.reverse()) each();
    }
  }

  #noteAppend(message: Message, owner: Owner): void {
    if (message.kind !== "query" || !message.text.startsWith("insert into journal")) return;
    this.#recorder.sent(owner, Number(message.params[0]));
  }

  #workloadCatalog() {
    return JSON.parse(this.#server.tables.list("catalogs")[0]?.document as string);
  }

  async #until(isDone: () => boolean, limitMs = Infinity): Promise<void> {
    const end = this.#time.now + limitMs;
    while (!isDone() && this.#time.next <= end) {
      await this.#time.step();
      this.#events += 1;
    }
  }

  /** Steps are arrivals: each takes the workload's next request, with its leap of the calendar. */
  #scheduleArrival(): void {
    if (this.#arrived >= this.#options.steps) return;
    this.#time.after(this.#random.next() * 20, WORLD, () => {
      this.#arrive();
      this.#scheduleArrival();
    });
  }

  #arrive(): void {
    this.#time.jump(this.#traffic.leap(this.#time.calendar()));
    const request = this.#traffic.next(this.#time.calendar());
    this.#arrived += 1;
    this.#open += 1;
    void perform(this.#world, request).then((call) => {
      this.#open -= 1;
      this.#hash.update(`${call.no} ${this.#time.now} ${call.answer?.status} ${call.answer?.body}\n`);
      if (call.answer !== null) this.#traffic.observe(request, call.answer.model);
    });
  }

  #scheduleTrouble(): void {
    this.#time.after(this.#random.next() * 2_000, WORLD, () => {
      if (this.#faults.isQuiet) return;
      this.#trouble();
      this.#scheduleTrouble();
    });
  }

  #trouble(): void {
    const random = this.#random;
    const process = random.pick(this.#processes);
    const kind = random.weighted({
      crash: 1,
      pause: 1,
      cut: 0.6,
      connections: 0.6,
      server: 0.2,
      passivate: 2,
      sweep: 2,
      stop: 0.3,
    });
    if (!process.isAlive) return;
    this.#faults.note(kind);
    switch (kind) {
      case "crash":
        process.crash(random.chance(0.2));
        this.#time.after(random.whole(1, 5_000), WORLD, () => process.start());
        return;
      case "pause":
        process.pause(random.pick([random.whole(10, 1_000), random.whole(1_000, 20_000)]));
        return;
      case "cut":
        this.#faults.cut(process.owner, random.whole(10, 12_000));
        process.database?.breakAll(() => random.whole(0, 9_000));
        return;
      case "connections":
        process.database?.breakAll(() => random.whole(0, 9_000));
        return;
      case "server":
        this.#server.crash(random.whole(1, 3_000));
        return;
      case "passivate":
        this.#in(process, () => {
          if (process.serving !== null) passivateIdle(process.serving.term.directory);
        });
        return;
      case "sweep":
        this.#sweep(process);
        return;
      case "stop":
        this.#in(process, () => {
          void process.service?.stop().then(() => {
            process.crash(false);
            this.#time.after(random.whole(1, 3_000), WORLD, () => process.start());
          });
        });
        return;
    }
  }

  #sweep(process: SimProcess): void {
    this.#in(process, () => {
      if (process.serving !== null) sweepAll(process.serving).catch(() => {});
    });
  }

  #in(process: SimProcess, run: () => void): void {
    this.#time.after(0, process.owner, run);
  }

  /** Faults stop; time goes on until every call is answered and everything that falls due is settled. */
  async #calmDown(): Promise<void> {
    this.#faults.isQuiet = true;
    await this.#until(() => this.#open === 0, 120_000);
  }

  /** The product's log goes nowhere; what it calls an error is one. */
  #listen(): () => void {
    const { writeSync } = Deno.stderr;
    const decoder = new TextDecoder();
    Deno.stderr.writeSync = (bytes) => {
      const line = decoder.decode(bytes);
      if (line.includes('"level":"error"')) this.#errors.push(line);
      if (Deno.env.get("SIM_LOG")) console.log(this.#time.current.name, this.#time.now, line.trim());
      return bytes.length;
    };
    return () => {
      Deno.stderr.writeSync = writeSync;
    };
  }

  #outcome(violation: Violation | null): Outcome {
    return {
      calls: this.#world.calls,
      faults: this.#faults.counts,
      virtualMs: this.#time.now,
      events: this.#events,
      trace: this.#hash.digest("hex"),
      violation,
    };
  }
}
