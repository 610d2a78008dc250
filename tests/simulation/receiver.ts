// The endpoints of webhooks: each answers well, slowly, wrongly or never, is dead for a while and returns. It keeps every
// message with its answer. When faults stop, every endpoint answers well.

import { Unavailable } from "../../actors/port.ts";
import type { Attempt, AttemptResult, Transport } from "../../src/webhooks/transport.ts";
import type { Random } from "../model/random.ts";
import type { Faults } from "./faults.ts";
import { type Owner, type VirtualTime, WORLD } from "./time.ts";

/** How long an answer may take; the product's own transport keeps to it, and so does this one. */
const ANSWER_MS = 15_000;

/** How an endpoint answers. */
const MANNERS = { well: 10, slow: 2, wrong: 2, silent: 1, dead: 2, gone: 0.15 };
type Manner = keyof typeof MANNERS;

/** A message as it came to its endpoint. */
export interface Receipt {
  readonly url: string;
  readonly messageId: string;
  readonly body: string;
  readonly process: Owner;
  /** The status that it was answered with; null where no answer was given. */
  status: number | null;
}

/** What the receiver needs of the world. */
interface ReceiverWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
}

/** Every endpoint of a world. */
export class Receiver {
  /** Called with each message as it arrives, before the answer. */
  readonly listeners: ((receipt: Receipt) => void)[] = [];
  readonly #world: ReceiverWorld;
  readonly #manners = new Map<string, Manner>();
  /** How often a message was sent, whether or not it came. */
  readonly #attempts = new Map<string, number>();
  /** Messages that were taken with thanks. */
  readonly #taken = new Set<string>();

  constructor(world: ReceiverWorld) {
    this.#world = world;
  }

  /** How often a message was sent. */
  attemptsOf(messageId: string): number {
    return this.#attempts.get(messageId) ?? 0;
  }

  /** Whether an endpoint has answered that it took a message. */
  hasTaken(messageId: string): boolean {
    return this.#taken.has(messageId);
  }

  /** Lets endpoints change their manners until faults are over. */
  scheduleMoods(urls: readonly string[]): void {
    const { time, random, faults } = this.#world;
    if (urls.length === 0) return;
    time.after(random.whole(100, 4_000), WORLD, () => {
      if (faults.isQuiet) return;
      const manner = random.weighted(MANNERS);
      this.#manners.set(random.pick(urls), manner);
      if (manner !== "well") faults.note(`an endpoint is ${manner}`);
      this.scheduleMoods(urls);
    });
  }

  /** The way of one process to all endpoints. */
  transportOf(owner: Owner): Transport {
    return { attempt: (attempt, signal) => this.#attempt(owner, attempt, signal), close() {} };
  }

  #attempt(owner: Owner, attempt: Attempt, signal: AbortSignal): Promise<AttemptResult> {
    const { time, random, faults } = this.#world;
    const { messageId } = attempt;
    return new Promise((resolve, reject) => {
      const abort = () => reject(new Unavailable("The attempt was ended"));
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort, { once: true });
      if (!faults.isQuiet && random.chance(0.01)) return reject(new Unavailable("The thread has ended"));
      this.#attempts.set(messageId, this.attemptsOf(messageId) + 1);
      time.after(ANSWER_MS, owner, () => resolve({ status: null, fault: "no answer in time" }));
      const there = faults.way();
      if (there === null) return;
      time.after(there, WORLD, () =>
        this.#come(owner, attempt, (result) => {
          const back = faults.way();
          if (back !== null) time.after(back, owner, () => resolve(result));
        }));
    });
  }

  #come(process: Owner, { url, messageId, body }: Attempt, answer: (result: AttemptResult) => void): void {
    const { time, random, faults } = this.#world;
    const manner = faults.isQuiet ? "well" : this.#manners.get(url) ?? "well";
    if (manner === "dead") return answer({ status: null, fault: "connection refused" });
    const receipt: Receipt = { url, messageId, body, process, status: null };
    for (const listen of this.listeners) listen(receipt);
    const answerWith = (status: number) => {
      receipt.status = status;
      if (status < 300) this.#taken.add(messageId);
      answer({ status, fault: status < 300 ? null : `status ${status}` });
    };
    switch (manner) {
      case "silent":
        return;
      case "slow":
        time.after(random.whole(500, 20_000), WORLD, () => answerWith(200));
        return;
      case "well":
        return answerWith(random.pick([200, 204]));
      case "wrong":
        return answerWith(random.pick([302, 404, 429, 500, 503]));
      case "gone":
        return answerWith(410);
    }
  }
}
