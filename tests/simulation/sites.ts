// The databases of a world, each with a server and workspaces of its own, and checkers that know nothing of the others.

import { KEYS_PER_STORE } from "../../src/storage/nodes/store_numbers.ts";
import { KEYS_PER_BLOCK } from "../../src/storage/nodes/node_store.ts";
import { everyChecker } from "./checks/every.ts";
import type { Line } from "./database/connection.ts";
import { Server } from "./database/server.ts";
import type { Faults } from "./faults.ts";
import type { Call } from "./history.ts";
import type { Wire } from "./network.ts";
import type { SimProcess } from "./process.ts";
import type { Receiver } from "./receiver.ts";
import type { Recorder } from "./recorder.ts";
import { SimStripe } from "./stripe.ts";
import { seedTenants, type Tenant } from "./tenants.ts";
import type { VirtualTime } from "./time.ts";
import type { Traffic } from "./traffic.ts";
import type { KeyHolders } from "./user_keys.ts";
import { BUYING, type SimTopUps } from "./top_ups.ts";
import type { Random } from "../model/random.ts";
import { Watch } from "./watch.ts";

/** A workspace with its traffic. */
export interface Visited {
  readonly tenant: Tenant;
  readonly traffic: Traffic;
  readonly holders: KeyHolders;
  readonly site: Site;
  /** How far its test clock is ahead of the calendar, as far as clients have heard. */
  aheadMs: number;
}

/** What a database is part of. */
interface SiteWorld {
  readonly time: VirtualTime;
  readonly recorder: Recorder;
  /** What befalls its connections, and those between nodes that are about it. */
  readonly faults: Faults;
  readonly wire: Wire;
}

/** What goes on at a database. */
interface Visitors {
  readonly random: Random;
  readonly processes: readonly SimProcess[];
  readonly calls: readonly Call[];
  readonly receiver: Receiver;
  readonly hasStripe: boolean;
  readonly topUps: SimTopUps | null;
}

/** A database of a world. */
export class Site {
  readonly place: number;
  readonly name: string;
  readonly tenants: readonly Tenant[];
  readonly server: Server;
  readonly line: Omit<Line, "owner">;
  readonly wire: Wire;
  /** Null in a world without Stripe. */
  stripe: SimStripe | null = null;
  watch!: Watch;
  readonly #world: SiteWorld;

  /** @param names those of all databases of the world */
  constructor(
    place: number,
    names: readonly string[],
    tenants: readonly Tenant[],
    startsAt: number,
    world: SiteWorld,
  ) {
    const { time, recorder, faults, wire } = world;
    this.#world = world;
    this.place = place;
    this.name = names[place] as string;
    this.tenants = tenants.filter(({ store }) => store === place);
    const server = this.server = new Server(time, {
      onAppend: (seq, payload) => recorder.durable(place, seq, payload),
    });
    const { tables } = server;
    seedTenants(tables, this.tenants, startsAt);
    tables.clusterId = clusterIdOf(place);
    if (place > 0) tables.userKeys = place * KEYS_PER_STORE + 1 - KEYS_PER_BLOCK;
    for (const [number, name] of names.entries()) {
      tables.put("stores", String(number), { number, name, clusterId: clusterIdOf(number), state: "open" });
    }
    this.line = {
      ...{ time, server, faults },
      onSend: (message, owner) => recorder.sees(place, message, owner),
    };
    this.wire = wire;
  }

  /** Lets Stripe sell here, and checkers look on. */
  open({ random, processes, calls, receiver, hasStripe, topUps }: Visitors): void {
    const { time, faults } = this.#world;
    const { server, tenants } = this;
    this.stripe = hasStripe ? new SimStripe({ time, random, faults, server, processes }, tenants) : null;
    const checkers = everyChecker(this.stripe, tenants.includes(BUYING) ? topUps : null);
    this.watch = new Watch(checkers, tenants, server, calls, receiver);
  }

  /** Whether a webhook has a message that is neither taken nor given up. */
  get hasPendingMessages(): boolean {
    const isPending = ({ status = "pending" }: { status?: unknown }) => (status ?? "pending") === "pending";
    return this.server.tables.list("webhook_messages", isPending).length > 0;
  }
}

function clusterIdOf(place: number): string {
  return place === 0 ? "simulated" : `simulated-${place}`;
}
