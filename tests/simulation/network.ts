// The network between nodes in virtual time, which `src/channel` uses in place of TCP. Lines are slow, break with a reset
// or silently, and deliver nothing while two machines cannot reach each other. A connect is refused only when the machine
// answers and its process is gone. A machine that is cut off answers nothing.

import { type Connection, ConnectionRefused, type Network } from "../../src/channel/network.ts";
import type { Faults } from "./faults.ts";
import { type Owner, type VirtualTime, WORLD } from "./time.ts";

/** Bytes that may be under way before a write waits for the reader. */
const WINDOW_BYTES = 64 * 1024;

interface Listening {
  readonly owner: Owner;
  readonly onConnection: (line: Connection) => void;
}

/** What lines of one world share. */
interface Parts {
  readonly time: VirtualTime;
  readonly faults: Faults;
}

/** All listeners and lines of a world. */
export class Wire {
  readonly #parts: Parts;
  readonly #listening = new Map<string, Listening>();
  readonly #lines = new Set<SimLine>();
  #ports = 0;

  constructor(time: VirtualTime, faults: Faults) {
    this.#parts = { time, faults };
  }

  /**
   * The network as a process has it.
   *
   * @param port it listens on; 0 for a free one
   */
  networkOf(owner: Owner, port: number): Network {
    return {
      listen: (onConnection) => {
        const address = `${owner.host}:${port === 0 ? 1000 + ++this.#ports : port}`;
        const listening = { owner, onConnection };
        this.#listening.set(address, listening);
        const close = () => {
          if (this.#listening.get(address) === listening) this.#listening.delete(address);
        };
        return Promise.resolve({ address, close });
      },
      connect: (address) => this.#connect(owner, address),
    };
  }

  /** A process has ended: its port is closed and its lines are reset, unless its machine has gone dark with it. */
  end(owner: Owner, isDark: boolean): void {
    for (const [address, listening] of [...this.#listening]) {
      if (listening.owner === owner && !isDark) this.#listening.delete(address);
    }
    for (const line of this.#linesOf(owner)) isDark ? line.goDark() : line.break();
  }

  /** Breaks the lines of a process. */
  breakLines(owner: Owner, isSilent: boolean): void {
    for (const line of this.#linesOf(owner)) isSilent ? line.goDark() : line.break();
  }

  #linesOf(owner: Owner): SimLine[] {
    return [...this.#lines].filter((line) => line.owner === owner);
  }

  #connect(from: Owner, address: string): Promise<Connection> {
    const { time, faults } = this.#parts;
    return new Promise((resolve, reject) => {
      time.after(faults.latency(), WORLD, () => {
        const listening = this.#listening.get(address);
        const host = address.slice(0, address.indexOf(":"));
        // What never arrives has no answer.
        if (faults.isApart(from.host, host) || faults.isDark(host)) return;
        if (listening === undefined || !listening.owner.isAlive) {
          time.after(faults.latency(), from, () => reject(new ConnectionRefused(`Refused: ${address}`)));
          return;
        }
        const [near, far] = this.#pair(from, listening.owner);
        time.after(0, listening.owner, () => listening.onConnection(far));
        time.after(faults.latency(), from, () => resolve(near));
      });
    });
  }

  #pair(from: Owner, to: Owner): [SimLine, SimLine] {
    const onEnd = (line: SimLine) => this.#lines.delete(line);
    const near = new SimLine(this.#parts, from, onEnd);
    const far = new SimLine(this.#parts, to, onEnd);
    near.peer = far;
    far.peer = near;
    this.#lines.add(near).add(far);
    return [near, far];
  }
}

/** What arrives: bytes, the end, or the news that the connection broke. */
type Arrival = Uint8Array | "end" | "broken";

/** One side of a connection. */
class SimLine implements Connection {
  readonly owner: Owner;
  peer!: SimLine;
  readonly #parts: Parts;
  readonly #onEnd: (line: SimLine) => void;
  readonly #arrived: Uint8Array[] = [];
  #reading: { resolve: (bytes: Uint8Array | null) => void; reject: (error: Error) => void } | null = null;
  #writing: (() => void)[] = [];
  /** Bytes that the other side has not read. */
  #unreadBytes = 0;
  #arrivesAt = 0;
  #end: "end" | "broken" | null = null;
  #isClosed = false;
  /** Whether this side's data is lost silently. */
  #isDark = false;

  constructor(parts: Parts, owner: Owner, onEnd: (line: SimLine) => void) {
    this.#parts = parts;
    this.owner = owner;
    this.#onEnd = onEnd;
  }

  read(): Promise<Uint8Array | null> {
    if (this.#isClosed) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reading = { resolve, reject };
      this.#give();
    });
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#isClosed || this.#end === "broken") return Promise.reject(new Error("The line is broken"));
    const { faults } = this.#parts;
    const fate = faults.fateOfFrame();
    if (fate !== "ok") this.#fail(fate === "silent");
    this.#unreadBytes += bytes.length;
    for (const piece of faults.piecesOf(bytes.slice())) this.#send(piece);
    if (this.#unreadBytes <= WINDOW_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.#writing.push(resolve));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#send("end");
    this.#reading?.resolve(null);
    this.#reading = null;
    this.#onEnd(this);
  }

  /** Breaks with a word: both sides learn of it soon. */
  break(): void {
    const { time, faults } = this.#parts;
    for (const side of [this, this.peer]) {
      side.goDark();
      time.after(faults.resetMs(), side.owner, () => side.#arrive("broken"));
    }
  }

  /** Loses everything silently from now on, on both sides. */
  goDark(): void {
    this.#isDark = true;
    this.peer.#isDark = true;
  }

  #fail(isSilent: boolean): void {
    if (isSilent) this.goDark();
    else this.break();
  }

  #send(arrival: Arrival): void {
    if (this.#isDark) return;
    const { time, faults } = this.#parts;
    const { owner, peer } = this;
    const together = faults.togetherAt(owner.host, peer.owner.host);
    this.#arrivesAt = Math.max(this.#arrivesAt, time.now + faults.latency(), together);
    time.at(this.#arrivesAt, WORLD, () => {
      if (!this.#isDark) time.after(0, peer.owner, () => peer.#arrive(arrival));
    });
  }

  #arrive(arrival: Arrival): void {
    if (this.#isClosed) return;
    if (typeof arrival === "string") {
      this.#end ??= arrival;
      this.#onEnd(this);
    } else this.#arrived.push(arrival);
    this.#give();
  }

  #give(): void {
    const reading = this.#reading;
    if (reading === null) return;
    const bytes = this.#arrived.shift();
    if (bytes === undefined && this.#end === null) return;
    this.#reading = null;
    if (bytes !== undefined) {
      reading.resolve(bytes);
      this.peer.#hasRead(bytes.length);
    } else if (this.#end === "broken") reading.reject(new Error("The line broke"));
    else reading.resolve(null);
  }

  /** The other side has taken bytes: writers that wait may go on. */
  #hasRead(bytes: number): void {
    this.#unreadBytes -= bytes;
    if (this.#writing.length === 0 || this.#unreadBytes > WINDOW_BYTES || this.#isDark) return;
    const { time, faults } = this.#parts;
    const writing = this.#writing;
    this.#writing = [];
    time.after(faults.latency(), this.owner, () => {
      for (const resolve of writing) resolve();
    });
  }
}
