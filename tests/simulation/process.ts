// One simulated process: the product's whole service with its HTTP routes over the simulated database. It can be
// crashed, paused, stopped and started again; what a crashed one still had to do never happens.

import type { Mode } from "../../actors/port.ts";
import type { Hono } from "hono";
import { makeApp } from "../../routes/app.ts";
import type { Features } from "../../src/process/features.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { Service, type Serving } from "../../src/service/service.ts";
import { replyFromWire } from "../model/document.ts";
import type { WireRequest } from "../model/wire.ts";
import { type Line, SimDatabase } from "./database/connection.ts";
import type { Attempt, Reply } from "./history.ts";
import { observedRegistry, type Recorder } from "./recorder.ts";
import { type Owner, WORLD } from "./time.ts";

/** The one app's secret key of a mode. */
export function secretKeyOf(mode: Mode): string {
  return `sk_${mode}_simulation0000000000000000000000`;
}

const FEATURES: Features = {
  privacySecret: "simulated-privacy-secret",
  exportSecret: null,
  publicUrl: null,
  modelServer: null,
};

/** A process, alive or between two lives. */
export class SimProcess {
  owner: Owner;
  service!: Service;
  database!: SimDatabase;
  readonly name: string;
  readonly #line: Omit<Line, "owner">;
  readonly #recorder: Recorder;
  readonly #key: string;
  #http!: Hono;
  #attempt: Attempt | null = null;
  #lives = 0;

  /** @param mode of the key that requests bring */
  constructor(name: string, line: Omit<Line, "owner">, recorder: Recorder, mode: Mode) {
    this.name = name;
    this.#key = secretKeyOf(mode);
    this.#line = line;
    this.#recorder = recorder;
    this.owner = { name, isAlive: false, pausedUntil: 0 };
  }

  /** Starts a life, unless one is under way. */
  start(): void {
    if (this.isAlive) return;
    const { time } = this.#line;
    this.owner = { name: `${this.name}.${++this.#lives}`, isAlive: true, pausedUntil: 0 };
    const { owner } = this;
    time.after(0, owner, () => {
      this.database = new SimDatabase({ ...this.#line, owner });
      const clock = { now: () => time.calendar() };
      this.service = new Service(this.database, makeIdSource(clock), clock, FEATURES);
      this.#http = makeApp(this.#viewOf(this.service), null);
      void this.service.start();
    });
  }

  get isAlive(): boolean {
    return this.owner.isAlive;
  }

  /** The running term, if this process is the writer as far as it knows. */
  get serving(): Serving | null {
    return this.isAlive && this.service !== undefined ? this.service.serving : null;
  }

  /** Ends this life at once. The server sees its connections go, or only their silence. */
  crash(isSilent: boolean): void {
    this.owner.isAlive = false;
    this.database?.breakAll(isSilent);
  }

  /** Stops in good order, and starts again after a while. */
  stop(restartMs: number): void {
    const { owner } = this;
    const { time } = this.#line;
    void this.service?.stop().then(() => {
      if (!owner.isAlive) return;
      this.crash(false);
      time.after(restartMs, WORLD, () => this.start());
    });
  }

  /** Stops for a while; what was due meanwhile comes afterwards. */
  pause(ms: number): void {
    // One that ended an earlier pause would let later messages overtake those that wait for it.
    this.owner.pausedUntil = Math.max(this.owner.pausedUntil, this.#line.time.now + ms);
  }

  /** Handles a request; runs in an event of this process. */
  async handle(attempt: Attempt, { method, path, body }: WireRequest): Promise<Reply> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` };
    if (attempt.call.key !== null && method !== "GET") headers["idempotency-key"] = attempt.call.key;
    const init: RequestInit = { method, headers };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
      headers["content-length"] = String(new TextEncoder().encode(init.body).byteLength);
    }
    const request = new Request(`http://${this.name}.test/api/v1${path}`, init);
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

  /** The service as the routes see it: who calls is noted. */
  #viewOf(service: Service): Service {
    const views = new WeakMap<Serving, Serving>();
    const registries = new WeakMap<Registry, Registry>();
    const observe = (registry: Registry) => {
      let observed = registries.get(registry);
      if (observed === undefined) {
        observed = observedRegistry(
          registry,
          (caller) => this.#attempt === null ? caller : this.#recorder.callerFor(caller, this.#attempt),
        );
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
      requireServing: () => viewOf(service.requireServing()),
      counts: service.counts,
      spans: service.spans,
      get state() {
        return service.state;
      },
    } as Service;
  }
}
