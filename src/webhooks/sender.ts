// The sender: delivers the messages of the webhook endpoints in this process's cells, each user's in the order of the turns.
//
// The tables are the truth: a message is pending there until the outcome of an attempt is written. So a restart, a kill or
// a new owner of the cell loses no message; at worst a message is sent twice. An attempt is made outside of the doors of
// cells, since a customer's server may take long. Its outcome is written only while this process still owns the cell.
//
// A message is sent when it is the earliest pending one of its user and endpoint. Each endpoint has a few messages in
// flight, independently of the others, so a slow endpoint delays no other.

import { Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { WebhookMessage } from "../domain/state/message.ts";
import type { Millis } from "../domain/values/period.ts";
import { SENDER_LIMITS, WEBHOOK_LIMITS } from "../process/webhook_limits.ts";
import { log, messageOf } from "../process/log.ts";
import type { Database } from "../storage/database.ts";
import {
  findMessages,
  headsOf,
  hurryRetries,
  listLanes,
  listLoose,
  listRetries,
  readBacklogs,
  type StoredMessage,
} from "../storage/stores/message_store.ts";
import type { Webhook } from "../storage/rows/registry_rows.ts";
import { Delivery } from "./delivery.ts";
import { Flights, type FlightWorld } from "./flights.ts";

/** What a sender uses. */
interface SenderWorld extends FlightWorld {
  readonly term: Pick<Term, "doors" | "flush" | "isServing">;
  readonly database: Pick<Database, "query">;
}

/** The pending messages of this process. */
interface SenderBacklog {
  /** Number of messages, of each endpoint up to a limit. */
  readonly pending: number;
  /** Age of the oldest one by its realm's clock; 0 without pending messages. */
  readonly oldestSeconds: number;
}

/** The sender of one term. */
export class Sender {
  readonly #world: SenderWorld;
  readonly #flights: Flights;
  readonly #deliveries = new Map<string, Delivery>();
  /** Deliveries to look at. */
  readonly #wanted = new Set<Delivery>();
  /** Recorded messages that may not be in the tables yet. */
  #noted: Pick<WebhookMessage, "id" | "webhookId" | "userKey">[] = [];
  #isFlushing = false;
  #isLooking = false;
  #isClosed = false;
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #retryTimer: ReturnType<typeof setTimeout> | null = null;
  #backlog: SenderBacklog | null = null;
  #countedAt = -Infinity;

  constructor(world: SenderWorld) {
    this.#world = world;
    this.#flights = new Flights(world, (...landed) => this.#landed(...landed));
  }

  /** Messages in flight. */
  get inFlight(): number {
    return this.#flights.size;
  }

  /** Adds messages that were recorded just now, and may not be in the tables yet. */
  note(messages: readonly Pick<WebhookMessage, "id" | "webhookId" | "userKey">[]): void {
    for (const { id, webhookId, userKey } of messages) this.#noted.push({ id, webhookId, userKey });
    if (this.#isFlushing || this.#isClosed) return;
    this.#isFlushing = true;
    void this.#flush();
  }

  /** Looks again now, at one endpoint or at all. */
  wake(webhookId?: string): void {
    if (webhookId === undefined) { for (const delivery of this.#deliveries.values()) this.#want(delivery); }
    else {
      const delivery = this.#deliveries.get(webhookId);
      if (delivery !== undefined) this.#want(delivery);
    }
  }

  /** Looks at all messages of an endpoint again, because some have become pending. */
  lookAnew(webhookId: string): void {
    const delivery = this.#deliveries.get(webhookId);
    if (delivery === undefined) return;
    delivery.startOver();
    this.#want(delivery);
  }

  /** Puts a changed endpoint in force. */
  changed(webhook: Webhook): void {
    const app = this.#world.registry.apps.get(webhook.appId);
    if (app === undefined || !this.#world.term.doors.isHere(app.cell)) return;
    const { webhookId, disabled } = webhook;
    const known = this.#deliveries.get(webhookId);
    if (webhook.removed) {
      this.#deliveries.delete(webhookId);
      if (known !== undefined) this.#wanted.delete(known);
    } else if (known === undefined) this.#add(webhook, app.cell);
    else if (known.isDisabled && !disabled) {
      known.isDisabled = false;
      known.timesEnabled += 1;
      known.isHurried = true;
      known.startOver();
      this.#want(known);
    } else known.isDisabled = disabled;
  }

  /** Adds cells that this process took. */
  taken(cells: readonly number[]): void {
    const mine = new Set(cells);
    for (const { cell, webhooks } of this.#world.registry.apps.values()) {
      if (mine.has(cell)) { for (const webhook of webhooks.values()) this.#add(webhook, cell); }
    }
  }

  /** Gives up cells: attempts in flight are ended, and repeated by the next owner. */
  given(cells: readonly number[]): void {
    const gone = new Set(cells);
    for (const [webhookId, delivery] of this.#deliveries) {
      if (!gone.has(delivery.cell)) continue;
      this.#deliveries.delete(webhookId);
      this.#wanted.delete(delivery);
    }
    this.#flights.end(({ cell }) => gone.has(cell));
  }

  /**
   * Makes an attempt at once, outside of the user's order and whatever the message's status. Resolves when its outcome is in
   * the table, or if the message no longer exists. A message in flight is not sent twice.
   *
   * @throws Unavailable when the attempt could not be made or its outcome not be written
   */
  async attemptNow(messageId: string): Promise<void> {
    const [message] = await findMessages(this.#world.database, [messageId]);
    if (message === undefined) return;
    const delivery = this.#deliveries.get(message.webhookId);
    if (delivery === undefined) throw new Unavailable("This process does not send for the webhook");
    // A message without a user has no lane that waits for it, so it is simply tried when it is due.
    const isScheduled = message.userKey === null && this.#isDue(message);
    await (this.#flights.of(messageId) ?? this.#flights.send(delivery, message, isScheduled));
  }

  /** The pending messages by the last count; null before the first. Reading it starts a new count. */
  get backlog(): SenderBacklog | null {
    const now = performance.now();
    if (now - this.#countedAt >= SENDER_LIMITS.countEveryMs) {
      this.#countedAt = now;
      this.#readBacklog().then((backlog) => this.#backlog = backlog, (error) => {
        if (!this.#isClosed) {
          log("warn", "The pending messages of webhooks were not counted", { error: messageOf(error) });
        }
      });
    }
    return this.#backlog;
  }

  /** Ends with the term: attempts in flight are ended, and repeated by the next owner of the cell. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#flights.end(() => true);
    this.#deliveries.clear();
    this.#wanted.clear();
    this.#noted = [];
  }

  #add({ webhookId, appId, disabled }: Webhook, cell: number): void {
    if (this.#isClosed) return;
    const delivery = new Delivery(webhookId, appId, cell, disabled);
    this.#deliveries.set(webhookId, delivery);
    this.#want(delivery);
  }

  /** Flushes recorded messages into the tables, until there are none left. */
  async #flush(): Promise<void> {
    while (this.#noted.length > 0 && !this.#isClosed) {
      const noted = this.#noted;
      this.#noted = [];
      try {
        await this.#world.term.flush();
      } catch {
        // A late heartbeat, after which the term continues; or its end.
        this.#noted = [...noted, ...this.#noted];
        await this.#pause(SENDER_LIMITS.pauseMs);
        continue;
      }
      for (const { webhookId, userKey, id } of noted) {
        const delivery = this.#deliveries.get(webhookId);
        if (delivery === undefined) continue;
        delivery.remember(userKey, id);
        this.#want(delivery);
      }
      await this.#pause(SENDER_LIMITS.flushEveryMs);
    }
    this.#isFlushing = false;
  }

  #want(delivery: Delivery): void {
    if (this.#isClosed || delivery.isDisabled || delivery.isPaused) return;
    this.#wanted.add(delivery);
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#lookAtAll();
  }

  /** Looks at deliveries with something to do, one endpoint after another. */
  async #lookAtAll(): Promise<void> {
    for (const delivery of this.#wanted) {
      this.#wanted.delete(delivery);
      try {
        await this.#look(delivery);
      } catch (error) {
        if (this.#isClosed) break;
        log("warn", "Messages of a webhook could not be read", { error: messageOf(error) });
        delivery.startOver();
        this.#wantLater(delivery);
      }
    }
    this.#isLooking = false;
    this.#armRetries();
  }

  /** Looks at an endpoint again after a pause, not before. */
  #wantLater(delivery: Delivery): void {
    if (delivery.isPaused) return;
    delivery.isPaused = true;
    void this.#pause(SENDER_LIMITS.pauseMs).then(() => {
      delivery.isPaused = false;
      if (this.#deliveries.get(delivery.webhookId) === delivery) this.#want(delivery);
    });
  }

  /** Sends the next messages of an endpoint, as far as its share in flight allows. */
  async #look(delivery: Delivery): Promise<void> {
    if (delivery.isDisabled || this.#flights.roomOf(delivery) <= 0) return;
    const { doors, isServing } = this.#world.term;
    if (!isServing || !doors.isOpen(delivery.cell)) return this.#wantLater(delivery);
    delivery.endedMeanwhile = new Set();
    try {
      await this.#lookInside(delivery);
    } finally {
      delivery.endedMeanwhile = null;
    }
    if (delivery.hasHints && this.#flights.roomOf(delivery) > 0) this.#want(delivery);
  }

  async #lookInside(delivery: Delivery): Promise<void> {
    const { database, inCell, clock } = this.#world;
    const { webhookId, cell } = delivery;
    if (delivery.isHurried) {
      const { hurryRows } = SENDER_LIMITS;
      const now = clock.now();
      const hurried = await inCell(cell, (session) => hurryRetries(session, webhookId, now, hurryRows));
      delivery.isHurried = hurried === hurryRows;
    }
    if (delivery.nextRetryAt <= clock.now()) await this.#lookAtRetries(delivery);
    const lanes = delivery.takeLanes();
    if (lanes.length > 0) this.#sendDue(delivery, await headsOf(database, webhookId, lanes));
    const loose = delivery.takeLoose();
    if (loose.length > 0) this.#sendDue(delivery, await findMessages(database, loose));
    if (lanes.length + loose.length === 0) await this.#goOn(delivery);
  }

  async #lookAtRetries(delivery: Delivery): Promise<void> {
    const { database, clock } = this.#world;
    // Messages in flight are among the first ones.
    const limit = delivery.inFlight + SENDER_LIMITS.inFlightMax + 1;
    delivery.nextRetryAt = Infinity;
    const retries = await listRetries(database, delivery.webhookId, limit);
    const later = retries.find((message) => !this.#isDue(message))?.nextAttemptAt;
    const next = later ?? (retries.length < limit ? Infinity : clock.now());
    delivery.nextRetryAt = Math.min(delivery.nextRetryAt, next);
    this.#sendDue(delivery, retries);
  }

  /** Continues the scan of all lanes by one page. */
  async #goOn(delivery: Delivery): Promise<void> {
    const { progress, webhookId } = delivery;
    const { database } = this.#world;
    const { lookRows } = SENDER_LIMITS;
    if (progress === null) return;
    if (progress.looseAfter !== null) {
      const loose = await listLoose(database, webhookId, progress.looseAfter, lookRows);
      progress.looseAfter = loose.length < lookRows ? null : (loose.at(-1) as StoredMessage).id;
      this.#sendDue(delivery, loose);
      return;
    }
    const lanes = await listLanes(database, webhookId, progress.lanesAfter, lookRows);
    progress.lanesAfter = lanes.at(-1) ?? progress.lanesAfter;
    // The scan may have been restarted meanwhile.
    if (lanes.length < lookRows && delivery.progress === progress) delivery.progress = null;
    delivery.rememberLanes(lanes);
  }

  /** Sends the messages that may be sent now. Those above the share in flight are remembered; later ones are found again. */
  #sendDue(delivery: Delivery, messages: readonly StoredMessage[]): void {
    if (delivery.isDisabled || this.#deliveries.get(delivery.webhookId) !== delivery) return;
    for (const message of messages) {
      const { id, status, userKey, nextAttemptAt, failures } = message;
      // In flight: the end of its attempt leads here again.
      if (status !== "pending" || this.#flights.of(id) !== null) continue;
      // The row may predate its outcome; the next look reads it again.
      if (delivery.endedMeanwhile?.has(id) === true) delivery.remember(userKey, id);
      else if (!this.#isDue(message)) delivery.nextRetryAt = Math.min(delivery.nextRetryAt, nextAttemptAt);
      else if (this.#flights.roomOf(delivery) > 0) {
        this.#flights.send(delivery, message, true).catch(() => {});
      } else if (failures > 0) delivery.nextRetryAt = Math.min(delivery.nextRetryAt, nextAttemptAt);
      else delivery.remember(userKey, id);
    }
  }

  #isDue({ status, nextAttemptAt }: StoredMessage): boolean {
    return status === "pending" && nextAttemptAt <= this.#world.clock.now();
  }

  /** Looks at the lane of a message after its attempt: the next one may be sent, or the same one later. */
  #landed({ webhookId }: Delivery, { id, userKey }: StoredMessage, isWritten: boolean): void {
    // The cell may have left and come back meanwhile; the current delivery has waited for it.
    const delivery = this.#deliveries.get(webhookId);
    if (delivery === undefined) return;
    delivery.endedMeanwhile?.add(id);
    delivery.remember(userKey, id);
    if (isWritten) this.#want(delivery);
    else this.#wantLater(delivery);
  }

  async #readBacklog(): Promise<SenderBacklog> {
    const { database, registry } = this.#world;
    const deliveries = [...this.#deliveries.values()];
    if (deliveries.length === 0) return NO_BACKLOG;
    const backlogs = await readBacklogs(
      database,
      deliveries.map(({ webhookId }) => webhookId),
      WEBHOOK_LIMITS.pendingCountMax,
    );
    let pending = 0;
    let oldestSeconds = 0;
    for (const backlog of backlogs) {
      const delivery = this.#deliveries.get(backlog.webhookId);
      const app = delivery === undefined ? undefined : registry.apps.get(delivery.appId);
      const webhook = app?.webhooks.get(backlog.webhookId);
      pending += backlog.pending;
      if (app === undefined || webhook === undefined || backlog.oldestAt === null) continue;
      oldestSeconds = Math.max(oldestSeconds, (app.realms[webhook.mode].now() - backlog.oldestAt) / 1000);
    }
    return { pending, oldestSeconds };
  }

  /** Wakes up when the next message is due for a retry. */
  #armRetries(): void {
    if (this.#isClosed) return;
    let next: Millis = Infinity;
    for (const delivery of this.#deliveries.values()) {
      const { nextRetryAt, isDisabled, isPaused } = delivery;
      // Above the share in flight, the end of the next attempt leads here again.
      if (isDisabled || isPaused || this.#flights.roomOf(delivery) <= 0) continue;
      next = Math.min(next, nextRetryAt);
    }
    const { clock } = this.#world;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
    if (next === Infinity) return;
    const ms = Math.min(Math.max(next - clock.now(), 1), SENDER_LIMITS.lookEveryMs);
    this.#retryTimer = setTimeout(() => {
      for (const delivery of this.#deliveries.values()) {
        if (delivery.nextRetryAt <= clock.now()) this.#want(delivery);
      }
      if (!this.#isLooking) this.#armRetries();
    }, ms);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) return;
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, ms);
      this.#timers.add(timer);
    });
  }
}

const NO_BACKLOG: SenderBacklog = { pending: 0, oldestSeconds: 0 };
