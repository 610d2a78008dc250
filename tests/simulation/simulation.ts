// One run: a world made from a seed, a phase with faults, a phase without faults, and the checkers' verdict. The same
// seed and number of steps give the same run, event by event.

import { createHash } from "node:crypto";
import { Random } from "../model/random.ts";
import { Canary } from "./canary.ts";
import { checkDatabases } from "./checks/databases.ts";
import { Everywhere } from "./everywhere.ts";
import { type Client, type ClientWorld, perform } from "./clients.ts";
import { Crew } from "./crew.ts";
import { Faults } from "./faults.ts";
import { hearLog, hurry } from "./hooks.ts";
import { type Call, isOfModel, type SimRequest } from "./history.ts";
import { Wire } from "./network.ts";
import { type SimPart, SimProcess } from "./process.ts";
import { Receiver } from "./receiver.ts";
import { Recorder } from "./recorder.ts";
import {
  CALM,
  CALM_MS,
  countsOf,
  MEMBERS,
  NAMES,
  type Outcome,
  PLANS,
  type RunOptions,
  sickPlaceOf,
  sumOf,
} from "./plans.ts";
import { Site, type Visited } from "./sites.ts";
import { type SimStripe, trustSignatures } from "./stripe.ts";
import { BUYING, SimTopUps } from "./top_ups.ts";
import { tenantsOf } from "./tenants.ts";
import { VirtualTime, WORLD } from "./time.ts";
import { Traffic } from "./traffic.ts";
import { KeyHolders } from "./user_keys.ts";
import {
  holdUp,
  OF_ONE_DATABASE,
  scheduleTrouble,
  startWithout,
  sweep,
  type TroubleWorld,
} from "./troubles.ts";
import type { Violation } from "./watch.ts";

export type { Outcome, RunOptions } from "./plans.ts";

const STARTS_AT = Date.UTC(2026, 0, 31, 10, 30, 0, 250);
const DAY_MS = 24 * 3_600_000;

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
  readonly #sites: readonly Site[];
  readonly #visited: readonly Visited[];
  readonly #canary: Canary | null;
  /** Null in a world without one, or where all workspaces have caps. */
  readonly #crew: Crew | null;
  /** Null in a world with one database. */
  readonly #everywhere: Everywhere | null;
  /** Null in a world without top-ups. */
  readonly #topUps: SimTopUps | null;
  /** Everything that happened. */
  readonly #trace: string[] = [];
  readonly #notes: Outcome["notes"][number][] = [];
  readonly #plan: (typeof PLANS)[number];
  readonly #startMoods: () => void;
  #events = 0;
  #arrived = 0;
  #open = 0;
  #tables: Outcome["tables"] = null;

  constructor(options: RunOptions) {
    this.#options = options;
    const {
      seed,
      nodes = MEMBERS[seed % MEMBERS.length] as number,
      troubles = {},
      stripe = true,
      trees = true,
      crew = trees && seed % 4 === 0,
      windows = 0.25,
      topUps = stripe && seed % 4 === 2,
      money = 0.25,
      overage = false,
      databases = 1,
    } = options;
    const random = this.#random = new Random(seed);
    const plan = this.#plan = random.pick(PLANS);
    const time = this.#time = new VirtualTime(STARTS_AT, random);
    const recorder = this.#recorder = new Recorder(time);
    const faults = new Faults(random, plan, time, (kind) => this.#note(kind));
    const counts = countsOf(seed, databases);
    const tenants = tenantsOf(seed, random, counts, {
      hasStripe: stripe,
      windowsShare: windows,
      moneyShare: money,
      hasOverage: overage,
      databases,
    });
    this.#topUps = topUps ? new SimTopUps(seed) : null;
    if (topUps) tenants.push(BUYING);
    const [wire, receiver] = [new Wire(time, faults), new Receiver({ time, random, faults })];
    const endpoints = tenants.flatMap(({ webhooks }) => webhooks.slice(1).map(({ url }) => url));
    this.#startMoods = () => receiver.scheduleMoods(endpoints);
    const names = NAMES.slice(0, databases);
    const place = sickPlaceOf(seed, databases);
    const calm = { faults: new Faults(random, CALM, time, (kind) => this.#note(kind)) };
    const sites = this.#sites = names.map((_, each) => {
      const isCalm = place !== null && place !== each;
      const ways = isCalm ? { ...calm, wire: new Wire(time, calm.faults) } : { faults, wire };
      return new Site(each, names, tenants, STARTS_AT, { time, recorder, ...ways });
    });
    const processes = ["a", "b", "c"].slice(0, nodes).map((name, place) => {
      // Now and then the last one is a front.
      const share = place === 2 && random.chance(0.2) ? 0 : 1;
      const port = random.chance(0.5) ? 0 : 900;
      const parts = { time, faults, sites, recorder, receiver, random, topUps: this.#topUps };
      return new SimProcess(parts, { name, share, port });
    });
    const [sick, calls] = [place === null ? null : sites[place] as Site, [] as Call[]];
    this.#world = {
      ...{ time, random, faults, recorder, sites, sick, wire, processes, calls },
      troubles: sick === null ? troubles : OF_ONE_DATABASE,
    };
    for (const site of sites) {
      site.open({ random, processes, calls, receiver, hasStripe: stripe, topUps: this.#topUps });
    }
    this.#topUps?.begin({ time, faults, processes });
    recorder.nodes.report = (message) => this.#report("nodes", message);
    recorder.onDurable = (store, batch, payload) => sites[store]?.watch.take(batch, payload);
    this.#visited = tenants.filter(({ isCanary }) => !isCanary).map((tenant) => {
      const traffic = new Traffic(random, tenant.catalog, {
        hasGone: tenant.caps.operationCap === null,
        hasTrees: trees,
      });
      const site = sites[tenant.store] as Site;
      return { tenant, traffic, holders: new KeyHolders(random, tenant), site, aheadMs: 0 };
    });
    this.#crew = crew ? Crew.of(random, tenants) : null;
    this.#everywhere = databases === 1 ? null : new Everywhere(random, names);
    this.#canary = counts[1] === 0
      ? null
      : new Canary(random, tenants.filter((each) => each.isCanary && each !== BUYING));
  }

  async run(): Promise<Outcome> {
    const isPaying = this.#options.stripe !== false || this.#topUps !== null;
    const trusting = isPaying ? [await trustSignatures()] : [];
    const undo = [
      ...trusting,
      this.#time.install(),
      this.#recorder.install(),
      hearLog((isError, line, text) => {
        if (isError) this.#report("no error", line);
        this.#note(`${this.#time.current.name}: ${text}`);
      }),
      hurry(this.#random),
    ];
    try {
      startWithout(this.#world);
      for (const process of this.#world.processes) process.start();
      if (this.#crew !== null) await this.#gather(this.#crew);
      this.#scheduleArrival();
      scheduleTrouble(this.#world, this.#plan.troubleMs);
      this.#startMoods();
      await this.#until(() => this.#arrived >= this.#options.steps || this.#violation !== null);
      if (this.#violation === null) await this.#calmDown();
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
      this.#trace.push(`${this.#time.now}`);
    }
    return isDone();
  }

  /** Steps are arrivals: each is the next request, and now and then a leap of the calendar. */
  #scheduleArrival(): void {
    if (this.#arrived >= this.#options.steps) return;
    // Calls come in bursts, and those about users who are being merged come at once.
    const isBurst = this.#visited.some(({ traffic }) => traffic.isChasing) || this.#random.chance(0.3);
    this.#time.after(this.#random.next() * (isBurst ? 4 : 2 * this.#plan.paceMs), WORLD, () => {
      this.#arrived += 1;
      if (this.#crew !== null && this.#random.chance(0.04)) {
        this.#callAtOnce(this.#crew);
      } else if (this.#canary !== null && this.#random.chance(0.15)) this.#askFrom(this.#canary);
      else this.#arrive(isBurst);
      this.#scheduleArrival();
    });
  }

  #arrive(isBurst: boolean): void {
    const visited = this.#whoIsNext();
    if (!isBurst) this.#leap(visited);
    if (this.#random.chance(0.03)) this.#setWebhook(visited);
    if (visited.site.stripe !== null) this.#sell(visited.site.stripe, visited);
    if (this.#options.batches !== false && this.#random.chance(0.08)) {
      this.#ask(visited, visited.traffic.batch(visited.tenant.workspaceId));
    }
    if (this.#options.userKeys !== false && this.#random.chance(0.08)) this.#askFrom(visited.holders);
    if (this.#topUps !== null && this.#random.chance(0.25)) this.#askFrom(this.#topUps);
    if (this.#everywhere !== null && this.#random.chance(0.1)) this.#askFrom(this.#everywhere);
    const request = visited.traffic.next(this.#clock(visited));
    // Now and then a call names an object of another workspace.
    const isStray = (request.op === "commit" || request.op === "release") && this.#random.chance(0.05);
    this.#ask(isStray ? this.#random.pick(this.#visited) : visited, request);
  }

  /** Something happens at Stripe, or those who pay by it do something here. */
  #sell(stripe: SimStripe, visited: Visited): void {
    const account = stripe.accounts.find(({ tenant }) => tenant === visited.tenant);
    if (account === undefined) return;
    if (this.#random.chance(0.2)) stripe.happen(account);
    if (this.#random.chance(0.1)) this.#ask(visited, visited.traffic.ofBuyer(stripe.buyersOf(account)));
  }

  /** Disables a webhook or enables it again; the first of a workspace listens all the time. */
  #setWebhook(visited: Visited): void {
    const webhooks = visited.tenant.webhooks.slice(1);
    if (webhooks.length === 0) return;
    const { webhookId } = this.#random.pick(webhooks);
    this.#ask(visited, { op: "setWebhook", input: { webhookId, disabled: this.#random.chance(0.4) } });
  }

  /** Whose users are being merged, else mostly one of the first, so that calls meet. */
  #whoIsNext(): Visited {
    const random = this.#random;
    const visited = this.#visited;
    const chasing = visited.find(({ traffic }) => traffic.isChasing);
    return chasing ?? random.pick(random.chance(0.4) ? visited.slice(0, 1) : visited);
  }

  /** The clock of the mode in use, as far as clients have heard. */
  #clock({ aheadMs }: Visited): number {
    return this.#time.calendar() + aheadMs;
  }

  /** Time leaps ahead; in test mode a client may move the test clock in its place. */
  #leap(visited: Visited): void {
    const byMs = visited.traffic.leap(this.#clock(visited));
    if (byMs > 0 && visited.tenant.caps.mode === "test" && this.#random.chance(0.5)) {
      this.#ask(visited, { op: "testClock", input: { advanceSeconds: byMs / 1000 } });
    } else this.#time.jump(byMs);
  }

  #ask(visited: Visited, request: SimRequest): void {
    const { tenant, traffic } = visited;
    this.#perform({ tenant, bearer: tenant.key }, request, ({ answer }) => {
      if (answer === null) return;
      if (isOfModel(request)) return traffic.observe(request, answer.model, this.#clock(visited));
      const toldMs = Date.parse(String(answer.model.data?.["now"]));
      if (toldMs > this.#clock(visited)) visited.aheadMs = toldMs - this.#time.calendar();
    });
  }

  /** Members of one organisation call together. */
  #callAtOnce(crew: Crew): void {
    holdUp(this.#world, this.#sites[crew.tenant.store] as Site);
    this.#arrived += this.#askAll(crew, crew.burst()) - 1;
  }

  #askAll({ tenant }: Crew, requests: readonly SimRequest[]): number {
    for (const request of requests) this.#perform({ tenant, bearer: tenant.key }, request, () => {});
    return requests.length;
  }

  /** Makes the organisation whose members call together, before faults begin. */
  async #gather(crew: Crew): Promise<void> {
    this.#setQuiet(true);
    this.#askAll(crew, crew.first);
    await this.#until(() => this.#open === 0);
    this.#setQuiet(false);
  }

  #setQuiet(isQuiet: boolean): void {
    for (const { line } of this.#sites) line.faults.isQuiet = isQuiet;
  }

  /** The next call of those who say it themselves. */
  #askFrom(asking: SimTopUps | Everywhere | KeyHolders | Canary): void {
    const { client, request } = asking.next();
    this.#perform(client, request, (call) => "observe" in asking && asking.observe(call));
  }

  #perform(client: Client, request: SimRequest, observe: (call: Call) => void): void {
    this.#open += 1;
    // Now and then a client takes a key that another call of the workspace has.
    const other = this.#random.chance(0.02) ? this.#world.calls.at(-this.#random.whole(1, 10)) : undefined;
    const takenKey = other?.tenant === client.tenant ? other.key : null;
    void perform(this.#world, client, request, takenKey).then((call) => {
      this.#open -= 1;
      this.#trace.push(`${call.no} ${this.#time.now} ${call.answer?.status} ${call.answer?.body}`);
      observe(call);
    });
  }

  /** Stops faults, waits for everything that was begun, and reads it once more. */
  async #calmDown(): Promise<void> {
    const [{ server }] = this.#sites as [Site];
    const { calmMs = CALM_MS } = this.#options;
    this.#setQuiet(true);
    this.#tables = { rows: server.tables.clone(), atMs: this.#time.calendar() };
    if (!await this.#until(() => this.#open === 0, calmMs)) {
      return this.#fail(`${this.#open} calls have no answer`);
    }
    const isAllTaken = () => this.#sites.every(({ stripe }) => stripe?.isAllTaken !== false);
    if (!await this.#until(isAllTaken, calmMs)) {
      return this.#fail("messages of Stripe are not taken");
    }
    if (!await this.#enableWebhooks()) return this.#fail("a webhook cannot be enabled");
    this.#time.jump(45 * DAY_MS);
    if (!await this.#until(() => this.#topUps?.isSettled(server.tables) !== false, calmMs)) {
      return this.#fail("a top-up is under way for ever");
    }
    if (!await this.#sweepAll()) return this.#fail("a sweep does not end");
    for (const visited of this.#visited) {
      if (!await this.#readAll(visited)) return this.#fail("reads have no answer");
    }
    // A call that its client had given up may have arrived since: what it holds lapses as well.
    this.#time.jump(2 * DAY_MS);
    for (const { watch } of this.#sites) watch.scene.sweptAtMs = this.#time.calendar();
    if (!await this.#sweepAll()) return this.#fail("a sweep does not end");
    if (!await this.#deliverAll()) return this.#fail("messages of webhooks wait for ever");
    // A caller that waits on a silent connection is notified in the end.
    await this.#until(() => this.#hasAnswered(), 60_000);
    for (const { watch } of this.#sites) watch.end();
    if (this.#sites.length > 1) this.#sites[0]?.watch.try("databases", () => checkDatabases(this.#world));
  }

  /** Enables every disabled webhook, so that its pending messages are sent. */
  async #enableWebhooks(): Promise<boolean> {
    for (const visited of this.#visited) {
      for (const { webhookId } of visited.tenant.webhooks) {
        const [row] = visited.site.server.tables.list("webhooks", (each) => each.webhookId === webhookId);
        if (row?.changedIn === 0) continue;
        this.#ask(visited, { op: "setWebhook", input: { webhookId, disabled: false } });
      }
    }
    return await this.#until(() => this.#open === 0, 60_000);
  }

  /** Lets everything pending go out. What failed lately is tried again in hours, which pass in leaps. */
  async #deliverAll(): Promise<boolean> {
    for (let day = 0; day < 7; day++) {
      // A sender may have disabled some for what failed long ago.
      if (!await this.#enableWebhooks()) return false;
      if (await this.#until(() => !this.#sites.some((site) => site.hasPendingMessages), 60_000)) return true;
      this.#time.jump(DAY_MS);
    }
    return false;
  }

  #hasAnswered(): boolean {
    return this.#world.calls.every(({ attempts }) =>
      attempts.every(({ reply, process }) => reply !== null || !process.isAlive)
    );
  }

  /** Reads everything of a workspace when nothing else runs. */
  async #readAll(visited: Visited): Promise<boolean> {
    for (const userId of visited.traffic.ids) {
      for (const op of ["usage", "customer", "users"] as const) this.#ask(visited, { op, input: { userId } });
      this.#ask(visited, { op: "credits", input: { userId, includeExpired: "true" } });
      this.#ask(visited, { op: "ledger", input: { userId, limit: 500 } });
      this.#ask(visited, { op: "events", input: { userId, limit: 100 } });
      if (!await this.#until(() => this.#open === 0, 60_000)) return false;
    }
    return true;
  }

  /** Every process runs every sweep, and twice: the second finds nothing new. */
  async #sweepAll(): Promise<boolean> {
    for (let round = 0; round < 2; round++) {
      for (const process of this.#world.processes) {
        for (const { place } of this.#sites) if (!await this.#sweepIn(process, place)) return false;
      }
    }
    return true;
  }

  async #sweepIn(process: SimProcess, place: number): Promise<boolean> {
    let hasEnded = false;
    let asked: SimPart | null = null;
    return await this.#until(() => {
      const part = process.parts[place];
      // What a process was asked in an earlier life has no answer.
      if (part !== undefined && part.serving !== null && asked !== part) {
        asked = part;
        this.#time.after(0, part.owner, () =>
          void sweep(part).then(async (isDone) => {
            await part.serving?.term.flush();
            hasEnded = isDone;
          }).catch(() => {}).finally(() => asked = null));
      }
      return hasEnded;
    }, 120_000);
  }

  #note(text: string): void {
    this.#notes.push({ order: ++this.#recorder.tick, text: `${this.#time.now.toFixed(0)} ms ${text}` });
  }

  #fail(message: string): void {
    this.#report("liveness", message);
  }

  #report(checker: string, message: string): void {
    this.#sites[0]?.watch.report(checker, message);
  }

  /** What was found at the first database where something was. */
  get #violation(): Violation | null {
    return this.#sites.map(({ watch }) => watch.violation).find((found) => found !== null) ?? null;
  }

  #outcome(): Outcome {
    return {
      calls: this.#world.calls,
      notes: this.#notes,
      faults: this.#world.faults.counts,
      moves: this.#world.processes.map(({ moves }) => moves),
      stripe: sumOf(this.#sites.map(({ stripe }) => stripe?.counts ?? new Map())),
      virtualMs: this.#time.now,
      calendarMs: this.#time.calendar() - STARTS_AT,
      events: this.#events,
      trace: createHash("sha256").update(this.#trace.join("\n")).digest("hex"),
      violation: this.#violation,
      tables: this.#tables,
    };
  }
}
