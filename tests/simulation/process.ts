// One simulated process: the product's whole service with its HTTP routes over one simulated database or several. It can
// be crashed, paused, stopped and started again; pending work of a crashed process is lost.

import { BUYING, type SimTopUps } from "./top_ups.ts";
import type { Hono } from "hono";
import { makeApp } from "../../routes/app.ts";
import type { Features } from "../../src/process/features.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import type { PassedHandlers } from "../../src/cluster/node_link.ts";
import { Service, type ServiceOptions, type Serving } from "../../src/cluster/service.ts";
import { type ListedStore, StoreList } from "../../src/cluster/store_list.ts";
import { Stores } from "../../src/cluster/stores.ts";
import { ConfigError } from "../../src/process/settings.ts";
import { SimClock } from "./clock.ts";
import type { Random } from "../model/random.ts";
import { replyFromWire } from "../model/document.ts";
import { SimDatabase } from "./database/connection.ts";
import type { Faults } from "./faults.ts";
import type { Attempt, Reply, SimWireRequest } from "./history.ts";
import type { Receiver } from "./receiver.ts";
import { nameSending, observedRegistry, type Recorder } from "./recorder.ts";
import type { Site } from "./sites.ts";
import type { Tenant } from "./tenants.ts";
import { newOwner, type Owner, ownerBeside, type VirtualTime, WORLD } from "./time.ts";

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
interface ProcessWorld {
  readonly time: VirtualTime;
  readonly faults: Faults;
  readonly sites: readonly Site[];
  readonly recorder: Recorder;
  readonly receiver: Receiver;
  readonly random: Random;
  /** Users who buy automatically; null for none. */
  readonly topUps: SimTopUps | null;
}

/** How a process is set up. */
interface ProcessOptions {
  readonly name: string;
  /** 0: it takes no cells. */
  readonly share: number;
  /** Where it listens for nodes in each of its lives; 0 for a free port. */
  readonly port: number;
}

/** What a process has of one database in one of its lives. */
export interface SimPart {
  readonly site: Site;
  readonly owner: Owner;
  readonly database: SimDatabase;
  readonly service: Service;
  /** The running term, if it has joined, as far as it knows. */
  readonly serving: Serving | null;
}

/** A process, alive or between two lives. */
export class SimProcess {
  owner: Owner;
  /** Those of the last life, by database; none before it has begun. */
  parts: readonly SimPart[] = [];
  readonly name: string;
  readonly #world: ProcessWorld;
  readonly #options: ProcessOptions;
  #http!: Hono;
  /** What stops it. */
  #whole!: Pick<Service, "leave" | "stop">;
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
    this.parts = [];
    const { random, time, faults, sites } = this.#world;
    faults.setDark(this.name, false);
    const skewMs = random.pick([0, random.whole(-2_000, 2_000), random.whole(-3_600_000, 3_600_000)]);
    const owner = this.owner = newOwner(`${this.name}.${this.#begun += 1}`, this.name, skewMs);
    time.after(0, owner, () => {
      const owners = sites.map(({ name }, place) =>
        place === 0 ? owner : ownerBeside(owner, `${owner.name} ${name}`)
      );
      this.parts = this.#newParts(owners);
      const services = this.parts.map(({ service }) => service);
      this.#services.push(...services);
      this.#whole = services.length === 1 ? services[0] as Service : new Stores(services);
      this.#http = makeApp(new Stores(services.map((service) => this.#viewOf(service))), ADMIN_TOKEN);
      for (const { service, owner: each } of this.parts) {
        if (each === owner) void service.start();
        else time.after(0, each, () => void service.start());
      }
    });
  }

  /** The services of a life, each over its database, as the settings would make them. */
  #newParts(owners: readonly Owner[]): SimPart[] {
    const { time, sites, receiver, topUps } = this.#world;
    const { share, port } = this.#options;
    const parts: SimPart[] = [];
    const list = this.#newList(owners);
    for (const [place, { database }] of list.stores.entries()) {
      const [site, owner] = [sites[place] as Site, owners[place] as Owner];
      const clock = new SimClock(time);
      owner.clock = () => clock.now();
      const service = new Service(database, makeIdSource(clock), clock, FEATURES, {
        network: site.wire.networkOf(owner, port === 0 ? 0 : port + place),
        share,
        adminToken: ADMIN_TOKEN,
        transport: receiver.transportOf(owner),
        ...topUps === null ? {} : { openStripe: topUps.openerOf(owner) },
        ...sites.length === 1 ? {} : { store: this.#storeOf(list, place, parts[0]?.service ?? null) },
      });
      const servingOf = () => this.isAlive ? time.seenBy(owner, () => service.serving) : null;
      parts.push({
        ...{ site, owner, service, database: database as SimDatabase },
        get serving() {
          return servingOf();
        },
      });
    }
    return parts;
  }

  /** The databases as a life has them; their tables are there. */
  #newList(owners: readonly Owner[]): StoreList {
    const stores = this.#world.sites.map(({ name, line }, place): ListedStore => ({
      name,
      database: new SimDatabase({ ...line, owner: owners[place] as Owner }),
      expected: { clusterId: null },
    }));
    return new StoreList(stores, () => Promise.resolve());
  }

  /** One of several databases as the product's start makes it. */
  #storeOf(list: StoreList, place: number, beside: Service | null): NonNullable<ServiceOptions["store"]> {
    const store = list.stores[place] as ListedStore;
    return {
      ...{ name: store.name, names: list.names, beside },
      open: () =>
        list.open(store).catch((error) => {
          if (error instanceof ConfigError) this.#world.recorder.nodes.report(error.message);
          throw error;
        }),
      plan: (to) => list.plan(store.name, to),
      endsProcess: () => false,
    };
  }

  get isAlive(): boolean {
    return this.owner.isAlive;
  }

  /** Whether it listens, if it is alive. */
  get hasBegun(): boolean {
    return this.parts.length > 0;
  }

  /** Who handles the calls of a workspace. */
  ownerFor({ store }: Pick<Tenant, "store">): Owner {
    return this.parts[store]?.owner ?? this.owner;
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
    this.owner.isAlive = false;
    if (isSilent) this.#world.faults.setDark(this.name, true);
    for (const { database, owner, site: { wire } } of this.parts) {
      database.breakAll(isSilent);
      wire.end(owner, isSilent);
    }
  }

  /** Stops in good order, handing its cells over where it is asked to, and starts again after a while. */
  stop(restartMs: number, isLeaving: boolean): void {
    const { owner } = this;
    const { random, time } = this.#world;
    const patienceMs = random.pick([random.whole(1, 1_500), 5_000]);
    const stop = async () => {
      // The program waits for a while, and stops beside a hand-over that goes on.
      const tired = new Promise<void>((resolve) => time.after(patienceMs, owner, resolve));
      if (isLeaving) await Promise.race([this.#whole.leave(), tired]);
      await this.#whole.stop();
      if (!owner.isAlive) return;
      this.crash(false);
      time.after(restartMs, WORLD, () => this.start());
    };
    void stop();
  }

  /** Stops for a while; what was due meanwhile happens afterwards. While it sleeps its monotonic clock is stopped. */
  pause(ms: number, isSleep: boolean): void {
    const { owner } = this;
    const { now } = this.#world.time;
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
      storeName: service.storeName,
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
      get awaited() {
        return service.awaited;
      },
    } as Service;
  }
}
