// Several nodes on one store, in this process: a test calls any of them, makes nodes join, leave and break off, and cuts
// the channels between two of them. On a server only: the embedded store has one process.

import type { Hono } from "hono";
import type { Connection, Network } from "../../src/channel/network.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import { wantedOwners } from "../../src/cluster/rendezvous.ts";
import type { IdSource } from "../../src/domain/values/ids.ts";
import type { Features } from "../../src/process/features.ts";
import type { Transport } from "../../src/webhooks/transport.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import type { Service, Serving } from "../../src/cluster/service.ts";
import demoCatalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import {
  ADMIN_TOKEN,
  type Answer,
  type CallOptions,
  ManualClock,
  newApp,
  send,
  startProcess,
  TEST_FEATURES,
  type TestApp,
  type TestService,
} from "../support/test_service.ts";
import { openTestStore, type TestStore } from "../support/test_store.ts";

// A new node gets cells at once: other tests prove how long it must have lived.
(CELL_LIMITS as { settledMs: number }).settledMs = 0;

const SETTLE_MS = 60_000;

/** Cables between nodes. Cutting one breaks its connections and allows no new ones. */
class Cables {
  readonly #ofAddress = new Map<string, string>();
  readonly #cut = new Set<string>();
  readonly #lines = new Map<Connection, string>();

  /** The network of one node. */
  networkOf(name: string): Network {
    const plain = tcpNetwork("127.0.0.1:0");
    return {
      listen: async (onConnection) => {
        const listening = await plain.listen(onConnection);
        this.#ofAddress.set(listening.address, name);
        return listening;
      },
      connect: async (address) => {
        const pair = pairOf(name, this.#ofAddress.get(address) ?? address);
        if (this.#cut.has(pair)) throw new Error("A test cut this cable");
        const line = await plain.connect(address);
        this.#lines.set(line, pair);
        return line;
      },
    };
  }

  cut(one: string, other: string): void {
    const pair = pairOf(one, other);
    this.#cut.add(pair);
    for (const [line, name] of this.#lines) if (name === pair) line.close();
  }

  mend(one: string, other: string): void {
    this.#cut.delete(pairOf(one, other));
  }
}

function pairOf(one: string, other: string): string {
  return [one, other].sort().join(" ");
}

/** One node under test. */
export class TestMember {
  readonly name: string;
  readonly service: Service;
  readonly http: Hono;
  readonly share: number;
  /** Calls of this object that have no answer yet. */
  inFlight = 0;

  constructor(name: string, share: number, { service, http }: { service: Service; http: Hono }) {
    this.name = name;
    this.share = share;
    this.service = service;
    this.http = http;
  }

  get serving(): Serving {
    return this.service.requireServing();
  }

  get term(): number {
    return this.serving.node.term;
  }

  /** Calls `/api/v1` with a key. */
  async ask(
    key: string,
    method: string,
    path: string,
    body?: unknown,
    options: CallOptions = {},
  ): Promise<Answer> {
    this.inFlight += 1;
    try {
      return await send(this.http, method, `/api/v1${path}`, body, { key, ...options });
    } finally {
      this.inFlight -= 1;
    }
  }

  admin(method: string, path: string, body?: unknown): Promise<Answer> {
    return send(this.http, method, `/api/admin/v1${path}`, body, { key: ADMIN_TOKEN });
  }

  newApp(document: unknown, workspace: Record<string, unknown> = {}): Promise<TestApp> {
    return newApp(this.http, (method, path, body) => this.admin(method, path, body), document, workspace);
  }

  /** Whether it owns the cell of an app. */
  owns({ appId }: TestApp): boolean {
    const { registry, term } = this.serving;
    return term.doors.isHere(registry.apps.get(appId)?.cell as number);
  }
}

/** Options of the nodes. */
interface MembersOptions {
  readonly nodes?: number;
  readonly fronts?: number;
  readonly features?: Partial<Features>;
  readonly clock?: ManualClock;
  readonly ids?: IdSource;
  /** Makes a node's attempts to deliver messages; by default in a thread. */
  readonly transportOf?: (name: string) => Transport;
}

/** The nodes of one store. */
export class Nodes implements AsyncDisposable {
  readonly store: TestStore;
  readonly clock: ManualClock;
  readonly cables = new Cables();
  /** The serving nodes; at first the fronts are last. */
  readonly all: TestMember[] = [];
  readonly #ids: IdSource;
  readonly #features: Features;
  readonly #transportOf: ((name: string) => Transport) | undefined;
  #joined = 0;

  private constructor(store: TestStore, options: MembersOptions) {
    const { clock = new ManualClock(), ids, features, transportOf } = options;
    this.store = store;
    this.clock = clock;
    this.#ids = ids ?? makeIdSource(clock);
    this.#features = { ...TEST_FEATURES, ...features };
    this.#transportOf = transportOf;
  }

  /** Starts nodes on a fresh store, and waits until each has the cells that it should have. */
  static async open(options: MembersOptions = {}): Promise<Nodes> {
    const opened = new Nodes(await openTestStore(), options);
    const { nodes = 2, fronts = 0 } = options;
    for (let place = 0; place < nodes + fronts; place++) await opened.join(place < nodes ? 1 : 0);
    await opened.settled();
    return opened;
  }

  /** Starts one more node. */
  async join(share = 1): Promise<TestMember> {
    const name = `m${++this.#joined}`;
    const { store, clock } = this;
    const network = this.cables.networkOf(name);
    const transport = this.#transportOf?.(name);
    const parts = {
      ...{ store, clock, ids: this.#ids, features: this.#features, share, network },
      ...transport === undefined ? {} : { transport },
    };
    const node = new TestMember(name, share, await startProcess(parts));
    this.all.push(node);
    return node;
  }

  /** Stops a node like a signal does: it hands everything over before it refuses calls. */
  async leave(node: TestMember): Promise<void> {
    await node.service.leave();
    this.all.splice(this.all.indexOf(node), 1);
    // Like the program: it goes on as a front until its port is closed.
    while (node.inFlight > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await node.service.stop();
  }

  /** Ends a node's term like a fault does; it joins again with another term. */
  async break(node: TestMember): Promise<void> {
    node.serving.term.fail(new Error("A test ended the term"));
    await node.service.ready();
  }

  get fronts(): TestMember[] {
    return this.all.filter(({ share }) => share === 0);
  }

  ownerOf(app: TestApp): TestMember {
    const owner = this.all.find((node) => node.owns(app));
    if (owner === undefined) throw new Error("No node owns the app's cell");
    return owner;
  }

  /** A node with cells that does not own those of an app. */
  strangerTo(app: TestApp): TestMember {
    const stranger = this.all.find((node) => node.share > 0 && !node.owns(app));
    if (stranger === undefined) throw new Error("Every node owns the app's cell");
    return stranger;
  }

  /** Cuts the channel between two nodes, and waits until both know. */
  async cut(one: TestMember, other: TestMember): Promise<void> {
    this.cables.cut(one.name, other.name);
    const isOpen = (from: TestMember, to: TestMember) => from.serving.node.parts.hub?.isOpen(to.term);
    while (isOpen(one, other) || isOpen(other, one)) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  /** Waits until every cell has its owner, all nodes know it, and all are connected. */
  settled(): Promise<void> {
    return this.until(() => this.#isSettled());
  }

  /** Waits for a state of the nodes. */
  async until(isReached: () => boolean): Promise<void> {
    const until = performance.now() + SETTLE_MS;
    while (!isReached()) {
      if (performance.now() > until) throw new Error("The nodes did not settle");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  #isSettled(): boolean {
    const all = this.all.flatMap(({ service, share }) =>
      service.serving === null ? [] : [{ ...service.serving, share }]
    );
    if (all.length < this.all.length) return false;
    const terms = all.map(({ node }) => node.term);
    const takers = all.filter(({ share }) => share > 0).map(({ node }) => node.term);
    const wanted = wantedOwners(takers);
    return all.every(({ node, term }) =>
      wanted.every((owner, cell) =>
        node.parts.owners.of(cell) === owner && term.doors.isOpen(cell) === (owner === node.term)
      ) && terms.every((other) => other === node.term || node.parts.hub?.isOpen(other))
    );
  }

  /** The nodes as one service: each request goes to the node that a test picks. */
  asService(pick: () => TestMember): TestService {
    const http = { fetch: (request: Request) => pick().http.fetch(request) } as Hono;
    const admin = (method: string, path: string, body?: unknown) => pick().admin(method, path, body);
    return {
      store: this.store,
      clock: this.clock,
      service: (this.all[0] as TestMember).service,
      http,
      serving: () => pick().serving,
      statements: this.store.database,
      admin,
      newApp: (document = demoCatalog, workspace = {}) => newApp(http, admin, document, workspace),
      retireApps: () => {},
      restart: () => this.break(pick()),
      close: () => this[Symbol.asyncDispose](),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { service } of this.all.splice(0).reverse()) await service.stop();
    await this.store.close();
  }
}
