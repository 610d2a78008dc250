// What a sender remembers about one webhook endpoint: which of its messages to look at. All of it is hints. The tables know
// which messages are pending, and a scan of all lanes finds what is forgotten here.

import type { UserKey } from "../domain/values/ids.ts";
import type { Millis } from "../domain/values/period.ts";
import { SENDER_LIMITS } from "../process/webhook_limits.ts";

/** The position of a scan: first the messages without a user, then the lanes by user. */
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
  /** How often the webhook was enabled again. An attempt begun before the last time no longer disables it. */
  timesEnabled = 0;
  /** Whether messages that wait for a retry are sent at once. */
  isHurried = false;
  /** Whether to wait before the next look, after a fault of this service. */
  isPaused = false;
  /** Messages in flight. */
  inFlight = 0;
  /** When to retry the next message; 0 before the first look. */
  nextRetryAt: Millis = 0;
  /** The position of the scan of all lanes; null without one. */
  progress: Progress | null = { looseAfter: "", lanesAfter: 0 };
  /** Messages whose attempt ended during a look, which may have read their old state. */
  endedMeanwhile: Set<string> | null = null;
  readonly #lanes = new Set<UserKey>();
  readonly #loose = new Set<string>();

  constructor(webhookId: string, appId: string, cell: number, isDisabled: boolean) {
    this.webhookId = webhookId;
    this.appId = appId;
    this.cell = cell;
    this.isDisabled = isDisabled;
  }

  /** Whether there is something to look at beside retries. */
  get hasHints(): boolean {
    return this.isHurried || this.#lanes.size > 0 || this.#loose.size > 0 || this.progress !== null;
  }

  /** Remembers to look at a message, or at its lane. */
  remember(userKey: UserKey | null, messageId: string): void {
    if (userKey === null) this.#loose.add(messageId);
    else this.#lanes.add(userKey);
    if (this.#lanes.size + this.#loose.size > SENDER_LIMITS.rememberedMax) this.startOver();
  }

  rememberLanes(lanes: readonly UserKey[]): void {
    for (const lane of lanes) this.#lanes.add(lane);
  }

  /** Removes and returns some lanes to look at. */
  takeLanes(): UserKey[] {
    return takeSome(this.#lanes);
  }

  /** Removes and returns some messages without a user to look at. */
  takeLoose(): string[] {
    return takeSome(this.#loose);
  }

  /** Forgets every hint and scans all lanes. */
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
