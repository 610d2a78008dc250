// What a sender knows of one webhook: which of its messages are worth a look. All of it is hints. The tables say what is
// pending, and whatever is forgotten here is found again by going through all lanes.

import type { UserKey } from "../domain/values/ids.ts";
import type { Millis } from "../domain/values/period.ts";
import { SENDER_LIMITS } from "../process/limits.ts";

/** How far a way through all lanes has come: first the messages outside every order, then the lanes by user. */
export interface Progress {
  looseAfter: string | null;
  lanesAfter: UserKey;
}

/** The deliveries to one webhook. */
export class Delivery {
  readonly webhookId: string;
  readonly appId: string;
  readonly cell: number;
  /** Whether the webhook was disabled when it was last seen. */
  isDisabled: boolean;
  /** Whether what waits for another attempt should go at once. */
  isHurried = false;
  /** Whether a look at it has to wait, since something went wrong on this side. */
  isPaused = false;
  /** Messages on their way. */
  inFlight = 0;
  /** When the next message is to be tried again; 0 where nobody has looked. */
  nextRetryAt: Millis = 0;
  /** Where the way through all lanes is; null where none is under way. */
  progress: Progress | null = { looseAfter: "", lanesAfter: 0 };
  /** Messages whose attempt ended while a look was under way, which may have read them as they were before. */
  endedMeanwhile: Set<string> | null = null;
  readonly #lanes = new Set<UserKey>();
  readonly #loose = new Set<string>();

  constructor(webhookId: string, appId: string, cell: number, isDisabled: boolean) {
    this.webhookId = webhookId;
    this.appId = appId;
    this.cell = cell;
    this.isDisabled = isDisabled;
  }

  /** Whether there is something to look at beside what is to be tried again. */
  get hasHints(): boolean {
    return this.isHurried || this.#lanes.size > 0 || this.#loose.size > 0 || this.progress !== null;
  }

  /** Remembers that a message is worth a look, or the lane that it is in. */
  remember(userKey: UserKey | null, messageId: string): void {
    if (userKey === null) this.#loose.add(messageId);
    else this.#lanes.add(userKey);
    if (this.#lanes.size + this.#loose.size > SENDER_LIMITS.rememberedMax) this.startOver();
  }

  rememberLanes(lanes: readonly UserKey[]): void {
    for (const lane of lanes) this.#lanes.add(lane);
  }

  /** Takes some lanes to look at. */
  takeLanes(): UserKey[] {
    return takeSome(this.#lanes);
  }

  /** Takes some messages outside every order to look at. */
  takeLoose(): string[] {
    return takeSome(this.#loose);
  }

  /** Forgets every hint and goes through all lanes. */
  startOver(): void {
    this.#lanes.clear();
    this.#loose.clear();
    this.progress = { looseAfter: "", lanesAfter: 0 };
    this.nextRetryAt = 0;
  }
}

function takeSome<T>(set: Set<T>): T[] {
  const taken: T[] = [];
  for (const value of set) {
    if (taken.length >= SENDER_LIMITS.lookRows) break;
    taken.push(value);
    set.delete(value);
  }
  return taken;
}
