// One simulated process: the product's whole service with its HTTP routes over the simulated database. It can be
// crashed, paused, stopped and started again; pending work of a crashed process is lost.

import { BUYING, type SimTopUps } from "./top_ups.ts";
import type { Hono } from "hono";
import { makeApp } from "../../routes/app.ts";
import type { Features } from "../../src/process/features.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import type { PassedHandlers } from "../../src/cluster/node_link.ts";
import { Service, type Serving } from "../../src/cluster/service.ts";
import { SimClock } from "./clock.ts";
import type { Random } from "../model/random.ts";
import { replyFromWire } from "../model/document.ts";
import { type Line, SimDatabase } from "./database/connection.ts";
import type { Attempt, Reply, SimWireRequest } from "./history.ts";
import type { Wire } from "./network.ts";
import type { Receiver } from "./receiver.ts";
import { nameSending, observedRegistry, type Recorder } from "./recorder.ts";
import { newOwner, type Owner, WORLD } from "./time.ts";

const ADMIN_TOKEN = "simulated-admin-token-0123456789";

const FEATURES: Features = {
  privacySecret: "simulated-privacy-secret",
  exportSecret: null,
  publicUrl: null,
  modelServer: null,
  anthropicServer: null,
  upstreams: [],
  allowsPrivateWebhooks: false,
  stripe: {
    byMode: { live: new Map([[BUYING.appId, "sk_live_simulated"]]), test: new Map() },
    base: null,
  },
};

/** What a process runs in. */
export interface ProcessWorld {
  readonly line: Omit<Line, "owner">;
  readonly wire: Wire;
  readonly recorder: Recorder;
  readonly receiver: Receiver;
  readonly random: Random;
  /** Users who buy automatically; null for none. */
  readonly topUps: SimTopUps | null;
}

/** How a process is set up. */
export interface ProcessOptions {
  readonly name: string;
  /** 0: it takes no cells. */
  readonly share: number;
  /** Where it listens for nodes in each of its lives; 0 for a free port. */
  readonly port: number;
}

/** A process, alive or between two lives. */
export class SimProcess {
  owner: Owner;
  service!: Service;
  database!: SimDatabase;
  readonly name: string;
  readonly #world: ProcessWorld;
  readonly #options: ProcessOptions;
  #http!: Hono;
  #attempt: Attempt | null = null;
  #begun = 0;
  readonly #services: Service[] = [];

  constructor(world: ProcessWorld, options: ProcessOptions) {
    this.name = options.name;
    this.#options = options;
    this.#world = world;
    this.owner = newOwner(this.name, this.name, 0);
    this.owner.isAlive = false;
  }

  /** Starts a life, unless one is under way. */
  start(): void {
    if (this.isAlive) return;
    const { random, line, wire, receiver, topUps } = this.#world;
    const { time, faults } = line;
    const { share, port } = this.#options;
    faults.setDark(this.name, false);
    const skewMs = random.pick([0, random.whole(-2_000, 2_000), random.whole(-3_600_000, 3_600_000)]);
    const owner = this.owner = newOwner(`${this.name}.${this.#begun += 1}`, this.name, skewMs);
    time.after(0, owner, () => {
      this.database = new SimDatabase({ ...line, owner });
      const clock = new SimClock(time);
      owner.clock = () => clock.now();
      this.service = new Service(this.database, makeIdSource(clock), clock, FEATURES, {
        network: wire.networkOf(owner, port),
        share,
        adminToken: ADMIN_TOKEN,
        transport: receiver.transportOf(owner),
        ...topUps === null ? {} : { openStripe: topUps.openerOf(owner) },
      });
      this.#services.push(this.service);
      this.#http = makeApp(this.#viewOf(this.service), ADMIN_TOKEN);
      void this.service.start();
    });
  }

  get isAlive(): boolean {
    return this.owner.isAlive;
  }

  /** The running term, if this process has joined, as far as it knows. */
  get serving(): Serving | null {
    if (!this.isAlive || this.service === undefined) return null;
    return this.#world.line.time.seenBy(this.owner, () => this.service.serving);
  }

  /** What its lives counted of cells and of calls between nodes. */
  get moves(): Record<string, number> {
    const sums: Record<string, number> = {};
    for (const { counts: { cluster } } of this.#services) {
      for (const [name, count] of Object.entries(cluster)) {
        if (typeof count === "number") sums[name] = (sums[name] ?? 0) + count;
      }
    }
    return sums;
  }

  /** Ends this life at once. Others see its connections go, or only its silence: then its machine is gone with it. */
  crash(isSilent: boolean): void {
    const { line: { faults }, wire } = this.#world;
    this.owner.isAlive = false;
    if (isSilent) faults.setDark(this.name, true);
    this.database?.breakAll(isSilent);
    wire.end(this.owner, isSilent);
  }

  /** Stops in good order, handing its cells over where it is asked to, and starts again after a while. */
  stop(restartMs: number, isLeaving: boolean): void {
    const { owner } = this;
    const { random, line: { time } } = this.#world;
    const patienceMs = random.pick([random.whole(1, 1_500), 5_000]);
    const stop = async () => {
      // The program waits for a while, and stops beside a hand-over that goes on.
      const tired = new Promise<void>((resolve) => time.after(patienceMs, owner, resolve));
      if (isLeaving) await Promise.race([this.service?.leave(), tired]);
      await this.service?.stop();
      if (!owner.isAlive) return;
      this.crash(false);
      time.after(restartMs, WORLD, () => this.start());
    };
    void stop();
  }

  /** Stops for a while; what was due meanwhile happens afterwards. While it sleeps its monotonic clock is stopped. */
  pause(ms: number, isSleep: boolean): void {
    const { owner } = this;
    const { now } = this.#world.line.time;
    // Ending an earlier pause would let later messages overtake those that wait for it.
    const until = Math.max(owner.pausedUntil, now + ms);
    if (isSleep) owner.sleptMs += until - Math.max(owner.pausedUntil, now);
    owner.pausedUntil = until;
  }

  /** Handles a request; runs in an event of this process. */
  async handle(attempt: Attempt, { method, path, body, isAdmin }: SimWireRequest): Promise<Reply> {
    const bearer = isAdmin === true ? ADMIN_TOKEN : attempt.call.bearer;
    const headers: Record<string, string> = {
      authorization: `Bearer ${bearer}`,
      "x-request-id": attempt.id,
    };
    if (attempt.call.key !== null && method !== "GET") headers["idempotency-key"] = attempt.call.key;
    const init: RequestInit = { method, headers };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
      headers["content-length"] = String(new TextEncoder().encode(init.body).byteLength);
    }
    const request = new Request(`http://${this.name}.test${path}`, init);
    // The key is looked at before anything is awaited.
    this.#attempt = attempt;
    const answer = this.#http.fetch(request);
    this.#attempt = null;
    const response = await answer;
    const text = await response.text();
    return {
      status: response.status,
      body: text,
      isReplayed: response.headers.get("idempotent-replayed") === "true",
      model: replyFromWire(response.status, JSON.parse(text)),
    };
  }

  /** Takes a message of Stripe; runs in an event of this process. Answers its status. */
  async takeOfStripe(path: string, payload: string, id: string): Promise<number> {
    const headers = { "stripe-signature": "simulated", "x-request-id": id };
    const request = new Request(`http://${this.name}.test${path}`, {
      method: "POST",
      headers,
      body: payload,
    });
    const { status } = await this.#http.fetch(request);
    return status;
  }

  /** The service as the routes see it: who calls is noted. */
  #viewOf(service: Service): Service {
    const views = new WeakMap<Serving, Serving>();
    const registries = new WeakMap<Registry, Registry>();
    const observe = (registry: Registry) => {
      let observed = registries.get(registry);
      if (observed === undefined) {
        observed = observedRegistry(registry, (caller, sendingId) => {
          const { recorder } = this.#world;
          const attempt = sendingId === null ? this.#attempt : recorder.attempts.get(sendingId) ?? null;
          return attempt === null ? caller : recorder.callerFor(caller, attempt);
        });
        registries.set(registry, observed);
      }
      return observed;
    };
    const viewOf = (serving: Serving): Serving => {
      let view = views.get(serving);
      if (view === undefined) {
        view = { ...serving, registry: observe(serving.registry) };
        views.set(serving, view);
      }
      return view;
    };
    return {
      get serving() {
        const { serving } = service;
        return serving === null ? null : viewOf(serving);
      },
      requestLog: service.requestLog,
      requireServing: () => viewOf(service.requireServing()),
      handlePassed: ({ onCall, onRequest }: PassedHandlers) =>
        service.handlePassed({
          onCall: (call, from) => onCall(nameSending(call), from),
          onRequest,
        }),
      counts: service.counts,
      spans: service.spans,
      get state() {
        return service.state;
      },
    } as Service;
  }
}
