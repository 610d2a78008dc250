// Which faults happen, and how often. Every choice comes from one random source. The liveness phase has no faults.

import type { Message } from "./database/server.ts";
import { Random } from "../model/random.ts";
import type { Owner, VirtualTime } from "./time.ts";

/** How likely what is. */
interface FaultPlan {
  /** A message to the database, or its answer, is lost with its connection. */
  readonly message: number;
  /** A message is slow. */
  readonly slow: number;
  /** A request or an answer is lost between client and process. */
  readonly network: number;
}

/** Faults as they come. */
export class Faults {
  /** How many of each kind there were. */
  readonly counts = new Map<string, number>();
  isQuiet = false;
  readonly #random: Random;
  readonly #plan: FaultPlan;
  readonly #time: VirtualTime;
  readonly #stuckUntil = new Map<Owner, number>();
  readonly #cutUntil = new Map<Owner, number>();
  /** Until when two machines cannot reach each other, by both names in order. */
  readonly #apartUntil = new Map<string, number>();
  readonly #dark = new Set<string>();
  readonly #onFault: (kind: string) => void;

  constructor(random: Random, plan: FaultPlan, time: VirtualTime, onFault: (kind: string) => void) {
    this.#onFault = onFault;
    this.#random = random;
    this.#plan = plan;
    this.#time = time;
  }

  /** Counts a fault. */
  note(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.#onFault(kind);
  }

  /** Half a round trip to the database, or between two nodes. */
  latency(): number {
    const random = this.#random;
    if (!this.isQuiet && random.chance(this.#plan.slow)) return random.whole(20, 1500);
    return 0.1 + random.next() * 1.5;
  }

  /** The fate of a message to the database. */
  fateOf(message: Message, _owner: Owner): "ok" | "lost" | "answer lost" {
    if (this.isQuiet || !this.#random.chance(this.#plan.message)) return "ok";
    const what = message.kind === "query" && message.text.startsWith("insert into journal")
      ? "append"
      : message.kind === "query"
      ? "statement"
      : message.kind;
    const fate = this.#random.chance(0.5) ? "lost" : "answer lost";
    this.note(`${what} ${fate}`);
    return fate;
  }

  /** The registry cannot be read by a process for a while, which else reaches the database. */
  stick(owner: Owner, ms: number): void {
    this.#stuckUntil.set(owner, this.#time.now + ms);
  }

  /** When a message arrives at the earliest. */
  stuckUntil(message: Message, owner: Owner): number {
    const isOfRegistry = message.kind === "query" &&
      message.text.startsWith("set transaction isolation level");
    return isOfRegistry ? this.#stuckUntil.get(owner) ?? 0 : 0;
  }

  /** How many of the messages under way still arrive when their connection breaks. */
  prefixOf(count: number): number {
    return this.#random.whole(0, count);
  }

  /** Whether a connection breaks without a word to either side. */
  isSilent(): boolean {
    return this.#random.chance(0.3);
  }

  /** How long a side takes to see that a connection was reset. */
  resetMs(): number {
    return this.#random.pick([0, 1, this.#random.whole(2, 100)]);
  }

  /** How long a side takes to see that nothing comes any more. */
  silenceMs(): number {
    return this.#random.whole(1_000, 30_000);
  }

  /** Cuts a process off from the database for a while. */
  cut(owner: Owner, ms: number): void {
    this.#cutUntil.set(owner, this.#time.now + ms);
  }

  /** Whether a process cannot reach the database. */
  isCut(owner: Owner): boolean {
    return (this.#cutUntil.get(owner) ?? 0) > this.#time.now;
  }

  /** Parts two machines for a while. */
  part(host: string, other: string, ms: number): void {
    this.#apartUntil.set(pairOf(host, other), this.#time.now + ms);
  }

  /** When two machines can reach each other. */
  togetherAt(host: string, other: string): number {
    return this.#apartUntil.get(pairOf(host, other)) ?? 0;
  }

  isApart(host: string, other: string): boolean {
    return this.togetherAt(host, other) > this.#time.now;
  }

  /** A machine is without power, or has it again. */
  setDark(host: string, isDark: boolean): void {
    if (isDark) this.#dark.add(host);
    else this.#dark.delete(host);
  }

  isDark(host: string): boolean {
    return this.#dark.has(host);
  }

  /** The fate of a write from one node to another. */
  fateOfFrame(): "ok" | "reset" | "silent" {
    if (this.isQuiet || !this.#random.chance(this.#plan.message)) return "ok";
    const fate = this.isSilent() ? "silent" : "reset";
    this.note(`channel ${fate}`);
    return fate;
  }

  /** Bytes as they arrive: now and then in two pieces. */
  piecesOf(bytes: Uint8Array): Uint8Array[] {
    if (bytes.length < 2 || !this.#random.chance(0.1)) return [bytes];
    const at = this.#random.whole(1, bytes.length - 1);
    return [bytes.slice(0, at), bytes.slice(at)];
  }

  /** The way of a message between a client and a process: how long it takes, or null where it is lost. */
  way(): number | null {
    const random = this.#random;
    if (this.isQuiet) return 0.2 + random.next();
    if (random.chance(this.#plan.network)) {
      this.note("message of a client lost");
      return null;
    }
    if (random.chance(this.#plan.slow)) return random.whole(50, 4_000);
    return 0.2 + random.next() * 4;
  }
}

function pairOf(host: string, other: string): string {
  return [host, other].sort().join(" ");
}
