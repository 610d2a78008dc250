// Messages in flight: each is sent outside of the doors of cells, and its outcome is written only while this process still
// owns the cell, before the next message of its lane is sent. An endpoint that refuses all messages is disabled here.

import { Unavailable } from "../../actors/port.ts";
import type { Millis } from "../domain/values/period.ts";
import type { AttemptEnd, WebhookCounts } from "../process/counts/webhook_counts.ts";
import type { Clock } from "../process/clock.ts";
import { SENDER_LIMITS } from "../process/webhook_limits.ts";
import { log, messageOf } from "../process/log.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import type { AttemptOutcome, StoredMessage } from "../storage/stores/message_store.ts";
import type { AppRealm, Registry } from "../tenant/registry.ts";
import type { Webhook } from "../storage/rows/registry_rows.ts";
import type { RegistryChanges } from "../tenant/registry_changes.ts";
import type { Delivery } from "./delivery.ts";
import { Outcomes } from "./outcomes.ts";
import { delayAfter, isLastStraw } from "./schedule.ts";
import type { AttemptResult, Transport } from "./transport.ts";

/** What sending uses. */
export interface FlightWorld {
  readonly registry: Pick<Registry, "apps" | "realms">;
  readonly changes: Pick<RegistryChanges, "change">;
  readonly inCell: InCell;
  readonly clock: Clock;
  readonly transport: Transport;
  /** A number from 0 to 1, for delays. */
  readonly chance: () => number;
  readonly counts: WebhookCounts;
}

/** Called with each message that was in flight, and whether its outcome is written. */
type Landed = (delivery: Delivery, message: StoredMessage, isWritten: boolean) => void;

interface Flight {
  readonly delivery: Delivery;
  readonly ends: AbortController;
  readonly done: Promise<void>;
}

/** The messages of a sender in flight. */
export class Flights {
  readonly #world: FlightWorld;
  readonly #onLanded: Landed;
  readonly #outcomes: Outcomes;
  readonly #flights = new Map<string, Flight>();

  constructor(
    world: FlightWorld,
    onLanded: Landed,
  ) {
    this.#world = world;
    this.#onLanded = onLanded;
    this.#outcomes = new Outcomes(world.inCell);
  }

  get size(): number {
    return this.#flights.size;
  }

  /** Resolves when an attempt has ended; null when the message is not in flight. */
  of(messageId: string): Promise<void> | null {
    return this.#flights.get(messageId)?.done ?? null;
  }

  /** How many more messages of an endpoint may be in flight. */
  roomOf({ inFlight }: Delivery): number {
    const { inFlightMax, allInFlightMax } = SENDER_LIMITS;
    const room = inFlightMax - inFlight;
    return this.size < allInFlightMax ? room : Math.min(room, 1 - inFlight);
  }

  /** Ends the attempts in flight to some endpoints. */
  end(isMeant: (delivery: Delivery) => boolean): void {
    for (const { delivery, ends } of this.#flights.values()) if (isMeant(delivery)) ends.abort();
  }

  /**
   * Sends a message; resolves when what came of it is written.
   *
   * @param isScheduled whether the attempt is one of the message's schedule
   * @throws Unavailable when the attempt could not be made, or what came of it not be written
   */
  send(delivery: Delivery, message: StoredMessage, isScheduled: boolean): Promise<void> {
    const ends = new AbortController();
    delivery.inFlight += 1;
    const land = (isWritten: boolean) => {
      delivery.inFlight -= 1;
      this.#flights.delete(message.id);
      this.#onLanded(delivery, message, isWritten);
    };
    const sent = this.#send(delivery, message, isScheduled, ends.signal);
    const done = sent.then(() => land(true), (error) => {
      land(false);
      throw error instanceof Unavailable ? error : new Unavailable("An attempt failed", { cause: error });
    });
    this.#flights.set(message.id, { delivery, ends, done });
    return done;
  }

  async #send(
    delivery: Delivery,
    message: StoredMessage,
    isScheduled: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { registry, clock, transport } = this.#world;
    const webhook = this.#webhookOf(delivery);
    const realm = registry.realms.get(message.realm);
    if (webhook === undefined || realm === undefined) return;
    const at = clock.now();
    const { timesEnabled } = delivery;
    const { id: messageId, body } = message;
    const secrets = webhook.secrets.filter(({ validUntil }) => validUntil === null || validUntil > at)
      .map(({ secret }) => secret);
    const result = await transport.attempt({ messageId, url: webhook.url, body, secrets, at }, signal);
    const failingSince = await this.#write(delivery, message, realm, isScheduled, result, at);
    const isLast = result.fault !== null && isLastStraw(result.status, failingSince, clock.now());
    if (isLast) void this.#disable(delivery, result.status, timesEnabled);
  }

  /** Writes what came of an attempt; returns since when its endpoint has only failed. */

  async #write(
    delivery: Delivery,
    message: StoredMessage,
    realm: AppRealm,
    isScheduled: boolean,
    { status: lastStatus, fault: lastError, answer }: AttemptResult,
    begunAt: Millis,
  ): Promise<Millis | null> {
    const { clock, chance, counts } = this.#world;
    const { webhookId, cell } = delivery;
    const at = clock.now();
    const isDelivered = lastError === null;
    const failures = isScheduled && !isDelivered ? message.failures + 1 : null;
    const delay = failures === null ? null : delayAfter(failures, chance());
    const isGivenUp = failures !== null && delay === null;
    const nextAttemptAt = delay === null ? null : at + delay;
    const outcome: AttemptOutcome = {
      messageId: message.id,
      status: isDelivered ? "delivered" : isGivenUp ? "failed" : null,
      failures,
      nextAttemptAt,
      lastStatus,
      lastError,
      endedAt: realm.now(),
      attempt: {
        at: begunAt,
        status: lastStatus,
        error: lastError,
        tookMs: Math.round(Math.max(at - begunAt, 0)),
        answer: answer ?? null,
      },
    };
    const failingSince = await this.#outcomes.save(cell, { webhookId, outcome, isDelivered, at });
    counts.attempts[endOf(outcome)] += 1;
    if (isDelivered && message.status !== "delivered") counts.delivered += 1;
    if (isGivenUp) counts.failed += 1;
    if (nextAttemptAt !== null) delivery.nextRetryAt = Math.min(delivery.nextRetryAt, nextAttemptAt);
    return failingSince;
  }

  #webhookOf({ appId, webhookId }: Delivery): Webhook | undefined {
    return this.#world.registry.apps.get(appId)?.webhooks.get(webhookId);
  }

  /**
   * Disables an endpoint that refuses all messages. Pending messages wait until it is enabled.
   *
   * @param timesEnabled the delivery's count when the attempt began: if the endpoint was enabled since, it stays enabled
   */
  async #disable(delivery: Delivery, status: number | null, timesEnabled: number): Promise<void> {
    const { changes, counts } = this.#world;
    if (this.#webhookOf(delivery)?.disabled !== false) return;
    const { webhookId, cell } = delivery;
    try {
      const isDone = await changes.change(cell, () => {
        const webhook = this.#webhookOf(delivery);
        const isEnabledSince = delivery.timesEnabled !== timesEnabled;
        if (webhook === undefined || webhook.disabled || isEnabledSince) return { rows: {}, answer: false };
        return { rows: { webhooks: [{ ...webhook, disabled: true }] }, answer: true };
      });
      if (!isDone) return;
      counts.disabled += 1;
      log("warn", "A webhook was disabled, since its endpoint only fails", { webhookId, status });
    } catch (error) {
      // Its next failure tries again.
      log("warn", "A webhook could not be disabled", { webhookId, error: messageOf(error) });
    }
  }
}

function endOf({ lastStatus, lastError }: AttemptOutcome): AttemptEnd {
  if (lastError === null) return "delivered";
  return lastStatus === null ? "unanswered" : "refused";
}
