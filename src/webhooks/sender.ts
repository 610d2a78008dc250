// The sender: delivers the messages of the webhooks whose cells this member owns, each user's in the order of the turns.
//
// The tables are the truth: a message is pending there until the outcome of an attempt is written. So a restart, a kill
// and a cell that changes hands lose nothing, and at worst a message is sent twice. An attempt is made outside of the
// doors, since a customer's server may take long; its outcome is written under the cell's fence, and whoever is not the
// owner any more writes nothing.
//
// A message goes when it is the earliest pending one of its user and webhook. Each webhook has a few messages on their way
// at a time, whatever the others do, so a slow endpoint delays no other.

import { Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { WebhookMessage } from "../domain/state/message.ts";
import type { Millis } from "../domain/values/period.ts";
import { SENDER_LIMITS, WEBHOOK_LIMITS } from "../process/limits.ts";
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

/** What a sender works with. */
export interface SenderWorld extends FlightWorld {
  readonly term: Pick<Term, "doors" | "flush" | "isServing">;
  readonly database: Pick<Database, "query">;
}

/** What waits for delivery from this member. */
export interface SenderBacklog {
  /** Messages, of each webhook up to a limit. */
  readonly pending: number;
  /** The age of the oldest on its realm's clock; 0 where none is pending. */
  readonly oldestSeconds: number;
}

/** The sender of one term. */
export class Sender {
  readonly #world: SenderWorld;
  readonly #flights: Flights;
  readonly #deliveries = new Map<string, Delivery>();
  /** Deliveries that are to be looked at. */
  readonly #wanted = new Set<Delivery>();
  /** Recorded messages that the tables may not have yet. */
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

  /** Messages on their way. */
  get inFlight(): number {
    return this.#flights.size;
  }

  /** Takes messages that were recorded just now, and may not be in the tables yet. */
  note(messages: readonly Pick<WebhookMessage, "id" | "webhookId" | "userKey">[]): void {
    for (const { id, webhookId, userKey } of messages) this.#noted.push({ id, webhookId, userKey });
    if (this.#isFlushing || this.#isClosed) return;
    this.#isFlushing = true;
    void this.#flush();
  }

  /** Looks again now, at one webhook or at all. */
  wake(webhookId?: string): void {
    if (webhookId === undefined) { for (const delivery of this.#deliveries.values()) this.#want(delivery); }
    else {
      const delivery = this.#deliveries.get(webhookId);
      if (delivery !== undefined) this.#want(delivery);
    }
  }

  /** Takes a webhook as it is from now on. */
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
      known.isHurried = true;
      known.startOver();
      this.#want(known);
    } else known.isDisabled = disabled;
  }

  /** Takes cells that came here. */
  taken(cells: readonly number[]): void {
    const mine = new Set(cells);
    for (const { cell, webhooks } of this.#world.registry.apps.values()) {
      if (mine.has(cell)) { for (const webhook of webhooks.values()) this.#add(webhook, cell); }
    }
  }

  /** Lets go of cells that are another's from now on: what is on its way from them is ended, and sent there again. */
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
   * Makes an attempt at once, outside of the user's order, whatever became of the message. Resolves when its outcome is in
   * the table; also for a message that is gone meanwhile. A message that is on its way already is not sent twice.
   *
   * @throws Unavailable when the attempt could not be made or its outcome not be written
   */
  async attemptNow(messageId: string): Promise<void> {
    const [message] = await findMessages(this.#world.database, [messageId]);
    if (message === undefined) return;
    const delivery = this.#deliveries.get(message.webhookId);
    if (delivery === undefined) throw new Unavailable("This process does not send for the webhook");
    // Outside every order there is no lane that waits for it, so what is due is simply tried.
    const isScheduled = message.userKey === null && this.#isDue(message);
    await (this.#flights.of(messageId) ?? this.#flights.send(delivery, message, isScheduled));
  }

  /** What waits for delivery, as it was counted last; null before the first time. Whoever asks has it counted anew. */
  get backlog(): SenderBacklog | null {
    const now = performance.now();
    if (now - this.#countedAt >= SENDER_LIMITS.countEveryMs) {
      this.#countedAt = now;
      this.#readBacklog().then((backlog) => this.#backlog = backlog, (error) => {
        if (!this.#isClosed) {
          log("warn", "What waits for webhooks was not counted", { error: messageOf(error) });
        }
      });
    }
    return this.#backlog;
  }

  /** Ends with the term: what is on its way is ended, and sent again by whoever owns its cell next. */
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

  /** Brings the tables up to date for messages that were recorded, again and again while there are some. */
  async #flush(): Promise<void> {
    while (this.#noted.length > 0 && !this.#isClosed) {
      const noted = this.#noted;
      this.#noted = [];
      try {
        await this.#world.term.flush();
      } catch {
        // A late beat, after which the term goes on; or its end.
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

  /** Looks at what is wanted, one webhook after another. */
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

  /** Looks at a webhook again after a pause, and not before. */
  #wantLater(delivery: Delivery): void {
    if (delivery.isPaused) return;
    delivery.isPaused = true;
    void this.#pause(SENDER_LIMITS.pauseMs).then(() => {
      delivery.isPaused = false;
      if (this.#deliveries.get(delivery.webhookId) === delivery) this.#want(delivery);
    });
  }

  /** Sends what may go next to a webhook, as far as there is room. */
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
    // Those on their way are among the first ones.
    const limit = delivery.inFlight + SENDER_LIMITS.inFlightMax + 1;
    delivery.nextRetryAt = Infinity;
    const retries = await listRetries(database, delivery.webhookId, limit);
    const later = retries.find((message) => !this.#isDue(message))?.nextAttemptAt;
    const next = later ?? (retries.length < limit ? Infinity : clock.now());
    delivery.nextRetryAt = Math.min(delivery.nextRetryAt, next);
    this.#sendDue(delivery, retries);
  }

  /** Goes on its way through all lanes, by one page. */
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
    // It may have been told to start over meanwhile.
    if (lanes.length < lookRows && delivery.progress === progress) delivery.progress = null;
    delivery.rememberLanes(lanes);
  }

  /** Sends those of some messages that may go now. Those without room are remembered, the others found again in time. */
  #sendDue(delivery: Delivery, messages: readonly StoredMessage[]): void {
    if (delivery.isDisabled || this.#deliveries.get(delivery.webhookId) !== delivery) return;
    for (const message of messages) {
      const { id, status, userKey, nextAttemptAt, failures } = message;
      // On its way: its landing leads here again.
      if (status !== "pending" || this.#flights.of(id) !== null) continue;
      // Read before or after its outcome was written, nobody knows: the next look reads it again.
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

  /** Looks at the lane of a message that has landed: the next one may go, or the same one in time. */
  #landed({ webhookId }: Delivery, { id, userKey }: StoredMessage, isWritten: boolean): void {
    // Its cell may have gone and come back meanwhile: whoever delivers now has waited for it.
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

  /** Comes back when the next message is to be tried again. */
  #armRetries(): void {
    if (this.#isClosed) return;
    let next: Millis = Infinity;
    for (const delivery of this.#deliveries.values()) {
      const { nextRetryAt, isDisabled, isPaused } = delivery;
      // Where there is no room, the next landing leads here again.
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
