// Nodes for the tests of the channel: hubs with a receiver that records what it receives, over TCP on this machine or a
// network in memory with connections that a test can hold, cut and read.

import { Hub, type Identity, type Receiver, type Reply, type StreamedReply } from "../../src/channel/hub.ts";
import { type Connection, ConnectionRefused, type Network } from "../../src/channel/network.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import { Random } from "../model/random.ts";
import { VirtualTime } from "../simulation/time.ts";
import { until } from "../support/until.ts";

export const SECRET = "the secret of the tests";

/** A node under test. */
export interface ClusterNode {
  readonly term: number;
  readonly address: string;
  readonly hub: Hub;
  /** "opened 1", "lost 1", "gone 1", in order. */
  readonly events: string[];
  readonly notes: unknown[];
  readonly calls: unknown[];
}

/** What a test sets differently from the default. */
interface MemberOptions {
  readonly network?: Network;
  readonly identity?: Partial<Identity>;
  readonly onCall?: (call: unknown, from: number) => Promise<Reply>;
  readonly onRequest?: Receiver["onRequest"];
}

/** A network in memory, or TCP on a free port of this machine. */
export const tcp = () => tcpNetwork("127.0.0.1:0");

/** Starts a node; without `onCall` it answers a call with itself as the head and its `body` as the body. */
export async function startMember(term: number, options: MemberOptions = {}): Promise<ClusterNode> {
  const events: string[] = [];
  const notes: unknown[] = [];
  const calls: unknown[] = [];
  const onCall = options.onCall ?? ((call) => Promise.resolve(echo(call)));
  const onRequest = options.onRequest ?? (() => Promise.resolve<StreamedReply>({ head: null, body: null }));
  const hub = new Hub(
    options.network ?? tcp(),
    { database: "db", secret: SECRET, protocol: 1, term, ...options.identity },
    {
      onCall: (call, from) => {
        calls.push(call);
        return onCall(call, from);
      },
      onRequest,
      onNote: (note) => void notes.push(note),
      onOpened: (peer) => void events.push(`opened ${peer}`),
      onLost: (peer, isRefused) => void events.push(`${isRefused ? "gone" : "lost"} ${peer}`),
    },
  );
  return { term, address: await hub.open(), hub, events, notes, calls };
}

function echo(call: unknown): Reply {
  return { head: call, body: (call as { body?: string } | null)?.body ?? "" };
}

/** Makes nodes peers of each other and waits until all have channels. */
export async function connectAll(...nodes: ClusterNode[]): Promise<void> {
  for (const { hub } of nodes) hub.setPeers(nodes);
  await until(() =>
    nodes.every(({ hub, term }) => nodes.every((other) => other.term === term || hub.isOpen(other.term)))
  );
}

export async function closeAll(...nodes: ClusterNode[]): Promise<void> {
  await Promise.all(nodes.map(({ hub }) => hub.close()));
}

/** How a promise ended: the name of the error's class, or "resolved". */
export async function endOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "resolved";
  } catch (error) {
    return (error as Error).constructor.name;
  }
}

/** Runs a test in the simulator's virtual time, in which seconds of silence pass at once. */
export async function inVirtualTime(work: (time: VirtualTime) => Promise<void>): Promise<void> {
  const time = new VirtualTime(0, new Random(1));
  const restore = time.install();
  try {
    let isDone = false;
    const done = work(time).finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    // The first event starts the work; the work makes all later ones.
    setTimeout(() => {}, 0);
    while (!isDone && await time.step());
    if (!isDone) throw new Error("The test waits for an event that never comes");
    await done;
  } finally {
    restore();
  }
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** A network within this process. */
export class MemoryNetwork implements Network {
  readonly #listeners = new Map<string, (line: Connection) => void>();
  /** Both ends of every connection, one after another. */
  readonly lines: MemoryLine[] = [];
  #ports = 0;

  listen(onConnection: (line: Connection) => void): Promise<{ address: string; close(): void }> {
    const address = `memory:${++this.#ports}`;
    this.#listeners.set(address, onConnection);
    return Promise.resolve({ address, close: () => void this.#listeners.delete(address) });
  }

  connect(address: string): Promise<Connection> {
    const onConnection = this.#listeners.get(address);
    if (onConnection === undefined) return Promise.reject(new ConnectionRefused(address));
    const [one, other] = linePair();
    this.lines.push(one, other);
    queueMicrotask(() => onConnection(other));
    return Promise.resolve(one);
  }
}

/** Makes both ends of a connection. */
export function linePair(): [MemoryLine, MemoryLine] {
  const one = new MemoryLine();
  const other = new MemoryLine();
  one.peer = other;
  other.peer = one;
  return [one, other];
}

/** One end of a connection in memory. */
export class MemoryLine implements Connection {
  peer!: MemoryLine;
  /** Everything written to this end. */
  readonly written: Uint8Array[] = [];
  /** Arrived and not read. */
  readonly #arrived: Uint8Array[] = [];
  #reader: ((bytes: Uint8Array | null) => void) | null = null;
  #isEnded = false;
  #held: (() => void)[] | null = null;
  isClosed = false;

  read(): Promise<Uint8Array | null> {
    if (this.isClosed) return Promise.reject(new Error("This end is closed"));
    const bytes = this.#arrived.shift();
    if (bytes !== undefined) return Promise.resolve(bytes);
    if (this.#isEnded) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.isClosed || this.peer.isClosed) throw new Error("The line is closed");
    const copy = bytes.slice();
    if (this.#held !== null) {
      await new Promise<void>((resolve) => this.#held?.push(resolve));
      if (this.isClosed || this.peer.isClosed) throw new Error("The line is closed");
    }
    this.written.push(copy);
    this.peer.arrive(copy);
  }

  /** Writes of this end wait until `letGo`. */
  hold(): void {
    this.#held ??= [];
  }

  letGo(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const go of held) go();
  }

  arrive(bytes: Uint8Array | null): void {
    if (bytes === null) this.#isEnded = true;
    if (this.#reader === null) {
      if (bytes !== null) this.#arrived.push(bytes);
      return;
    }
    this.#reader(bytes);
    this.#reader = null;
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.arrive(null);
    if (!this.peer.isClosed) this.peer.arrive(null);
    this.letGo();
  }
}
