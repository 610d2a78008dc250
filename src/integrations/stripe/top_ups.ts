// The worker that pays the top-ups of the users in this process's cells.
//
// The tables are the truth: a top-up is under way there until it is settled. So a restart, a kill or a new owner of the
// cell loses none. Stripe is called outside of the doors of cells; each step is a turn of the user, which only the owner
// of the cell can run. Two processes that work on one top-up for a moment do no harm (top_up_payment.ts).
//
// What a turn made is paid at once; the rest is found by a look at the tables. Of each app a few are paid at a time.

import { realmsHere, visit } from "../../../actors/visit.ts";
import { Unavailable } from "../../../actors/port.ts";
import type { Term } from "../../../actors/term.ts";
import { isUnderWay, type TopUpIntent } from "../../domain/state/top_up.ts";
import { readPaymentIntent } from "../../domain/stripe/message.ts";
import { ownerOf } from "../../domain/values/ids.ts";
import type { TopUpStep } from "../../domain/credits/top_up_work.ts";
import { inTurn } from "../../process/in_turn.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import { log, messageOf } from "../../process/log.ts";
import type { StripeKeys } from "../../process/stripe_keys.ts";
import type { Database } from "../../storage/database.ts";
import { listUnderWay, type UnderWay } from "../../storage/stores/top_up_store.ts";
import type { AppRealm, Registry } from "../../tenant/registry.ts";
import { handle, type StripeWorld } from "./receive.ts";
import { keyOf, type OpenStripe } from "./stripe_client.ts";
import { payTopUp } from "./top_up_payment.ts";

/** What the worker uses. */
interface TopUpWorld extends StripeWorld {
  readonly term: Pick<Term, "directory" | "doors" | "isServing">;
  readonly registry: Pick<Registry, "apps" | "realms">;
  readonly database: Pick<Database, "query">;
  readonly features: { readonly stripe: StripeKeys };
  readonly openStripe: OpenStripe;
}

/** A top-up to look at. */
interface Job {
  readonly id: string;
  readonly realm: number;
  /** Looks that ended without a result. */
  tries: number;
  nextAt: number;
  isRunning: boolean;
  /** Whether something happened to it during the run. */
  isNoted: boolean;
}

/** The worker of one term. */
export class TopUps {
  readonly #world: TopUpWorld;
  readonly #jobs = new Map<string, Job>();
  readonly #running = new Map<string, number>();
  #lookAt = 0;
  #isLooking = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(world: TopUpWorld) {
    this.#world = world;
    this.#arm();
  }

  /** Top-ups of this process that are known to be under way. */
  get underWay(): number {
    return this.#jobs.size;
  }

  /** Looks at top-ups now: a turn changed them, and it is durable, or Stripe sent a message about one. */
  note(intents: readonly Pick<TopUpIntent, "id" | "realm" | "status">[]): void {
    for (const intent of intents) {
      if (isUnderWay(intent)) this.#add(intent, true);
    }
    this.#pump();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #add({ id, realm }: UnderWay, isHurried: boolean): void {
    const known = this.#jobs.get(id);
    if (known === undefined) {
      if (this.#jobs.size >= STRIPE_LIMITS.payingKnownMax) return;
      this.#jobs.set(id, { id, realm, tries: 0, nextAt: this.#now, isRunning: false, isNoted: false });
    } else if (known.isRunning) known.isNoted = true;
    else if (isHurried) known.nextAt = this.#now;
  }

  /** Monotonic: the clock of the process may be the machine's until the first heartbeat, and must not be read before. */
  get #now(): number {
    return performance.now();
  }

  /** Begins as many runs as there is room for. */
  #pump(): void {
    if (this.#isClosed) return;
    let room = STRIPE_LIMITS.payingMax - [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    for (const job of this.#jobs.values()) {
      if (room <= 0) break;
      if (job.isRunning || job.nextAt > this.#now) continue;
      const realm = this.#world.registry.realms.get(job.realm);
      if (realm === undefined || !this.#world.term.doors.isHere(realm.cell)) {
        this.#jobs.delete(job.id);
        continue;
      }
      const { appId } = realm.app.record;
      if ((this.#running.get(appId) ?? 0) >= STRIPE_LIMITS.payingOfAppMax) continue;
      room -= 1;
      void this.#run(job, realm, appId);
    }
    this.#arm();
  }

  async #run(job: Job, realm: AppRealm, appId: string): Promise<void> {
    const { counts } = this.#world;
    job.isRunning = true;
    this.#running.set(appId, (this.#running.get(appId) ?? 0) + 1);
    let isSettled = false;
    try {
      isSettled = await this.#pay(job, realm);
      if (isSettled) counts.stripe.topUpsSettled += 1;
      else counts.stripe.topUpsLater += 1;
    } catch (error) {
      if (!(error instanceof Unavailable)) {
        counts.stripe.topUpsFaults += 1;
        log("warn", "A top-up could not be looked at", { topUpId: job.id, error: messageOf(error) });
      }
    }
    job.isRunning = false;
    const left = (this.#running.get(appId) ?? 1) - 1;
    if (left === 0) this.#running.delete(appId);
    else this.#running.set(appId, left);
    if (isSettled) this.#jobs.delete(job.id);
    else this.#putOff(job);
    this.#pump();
  }

  #putOff(job: Job): void {
    const { payingPauseMs, payingPauseMaxMs } = STRIPE_LIMITS;
    const pause = Math.min(payingPauseMs * 2 ** job.tries, payingPauseMaxMs);
    if (job.isNoted) job.tries = 0;
    else job.tries += 1;
    job.nextAt = this.#now + pause;
    job.isNoted = false;
  }

  /** Goes on with a top-up; returns whether nothing is left to do here. */
  async #pay({ id }: Job, realm: AppRealm): Promise<boolean> {
    const world = this.#world;
    const { term, registry, clock, features } = world;
    const key = keyOf(features.stripe, registry, realm.app, realm.mode);
    if (key === null) throw new Error(`There is no key of Stripe for ${realm.mode} mode of this app`);
    const owner = ownerOf("topUp", id) as number;
    const turn = async (step: TopUpStep) => {
      const call = {
        realm,
        name: "topUpWork",
        input: { topUpId: id, step },
        needs: { topUpId: id },
      } as const;
      const result = await visit(term, realm.cell, () => term.directory.runByKey(owner, call));
      return result?.ok === true ? result.answer.intent : null;
    };
    const end = await payTopUp({
      stripe: await world.openStripe(key),
      realNow: () => clock.now(),
      turn,
      receive: async (object) => {
        const head = { eventId: object.id, type: ANSWER, created: clock.now(), isLive: object.livemode };
        const message = readPaymentIntent(head, object as unknown as Record<string, unknown>);
        await visit(term, realm.cell, () => inTurn(realm, () => handle(world, realm, message)));
      },
    });
    return end === "settled";
  }

  /** Finds top-ups that no turn of this process made: of an earlier term, or another owner. */
  async #look(): Promise<void> {
    const { term, registry, database } = this.#world;
    const realms = realmsHere(term, registry.realms.values()).map(({ realm }) => realm);
    let after = "";
    while (!this.#isClosed && realms.length > 0) {
      const page = await listUnderWay(database, realms, after, LOOK_ROWS);
      for (const row of page) this.#add(row, false);
      if (page.length < LOOK_ROWS || this.#jobs.size >= STRIPE_LIMITS.payingKnownMax) break;
      after = (page.at(-1) as UnderWay).id;
    }
  }

  /** Wakes up for the next look at a top-up, or at the tables. */
  #arm(): void {
    if (this.#isClosed) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    let next = this.#isLooking ? Infinity : this.#lookAt;
    for (const job of this.#jobs.values()) {
      // What has no room waits for the end of a run.
      if (!job.isRunning && job.nextAt > this.#now) next = Math.min(next, job.nextAt);
    }
    const ms = Math.min(Math.max(next - this.#now, 1), STRIPE_LIMITS.payingLookMs);
    this.#timer = setTimeout(() => this.#wake(), ms);
  }

  #wake(): void {
    this.#pump();
    if (this.#isLooking || this.#lookAt > this.#now) return;
    this.#isLooking = true;
    void this.#look().catch((error) => {
      if (!this.#isClosed) log("warn", "Top-ups could not be looked for", { error: messageOf(error) });
    }).finally(() => {
      this.#isLooking = false;
      this.#lookAt = this.#now + STRIPE_LIMITS.payingLookMs;
      this.#pump();
    });
  }
}

/** The type of a message that is an answer to a call of this service. */
const ANSWER = "top_up.answer";

const LOOK_ROWS = 1_000;
