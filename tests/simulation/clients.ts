// Clients and the network between them and the processes. A client sends a call, waits, and sends it again under the
// same idempotency key until it is answered or it gives up; the network delays, drops and doubles.

import type { Random } from "../model/random.ts";
import type { Faults } from "./faults.ts";
import { type Attempt, type Call, isFinal, type Reply, type SimRequest, wireOfRequest } from "./history.ts";
import type { SimProcess } from "./process.ts";
import type { Recorder } from "./recorder.ts";
import type { Tenant } from "./tenants.ts";
import { type VirtualTime, WORLD } from "./time.ts";

/** What clients need of the world. */
export interface ClientWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
  readonly recorder: Recorder;
  readonly processes: readonly SimProcess[];
  readonly calls: Call[];
}

/** Calls that only read need no key to be sent again. */
const READS: ReadonlySet<string> = new Set([
  "canUse",
  "usage",
  "users",
  "credits",
  "ledger",
  "customer",
  "events",
  "event",
  "plans",
  "ownUsage",
  // Changes of the registry have no keys, and may be sent again.
  "applyCatalog",
  "promoteCatalog",
  "setCap",
  "createKey",
  "revokeKey",
  "setWebhook",
  "listWorkspaces",
  "listApps",
  "listStores",
  "createWorkspace",
]);

const KEYLESS: ReadonlySet<string> = new Set(["commit", "release", "track"]);

/** Who calls. */
export interface Client {
  readonly tenant: Tenant;
  /** The API key that calls bring. */
  readonly bearer: string;
}

/**
 * Makes a call and sees it through; resolves when it is answered or given up. While faults come, clients may give
 * up; once they are over, each client that can ask again gets an answer.
 *
 * @param takenKey a key that another call has already
 */
export async function perform(
  world: ClientWorld,
  { tenant, bearer }: Client,
  request: SimRequest,
  takenKey: string | null,
): Promise<Call> {
  const { random, recorder, calls, time, faults } = world;
  const isRead = READS.has(request.op);
  const no = calls.length + 1;
  // Some settle without a key: nothing else comes of doing that twice.
  const isLoose = KEYLESS.has(request.op) && random.chance(0.15);
  const key = isRead || isLoose ? null : takenKey ?? `${keyPrefixOf(calls, bearer)}key-${no}`;
  const call: Call = {
    no,
    tenant,
    bearer,
    request: structuredClone(request),
    key,
    calledAt: ++recorder.tick,
    attempts: [],
    answeredAt: null,
    answer: null,
    isGivenUp: false,
    atMs: time.now,
  };
  calls.push(call);
  const patience = random.chance(0.1) ? 1 : 40;
  for (let sent = 0; isLoose ? sent < 1 : sent < patience || faults.isQuiet; sent++) {
    const reply = await sendOnce(world, call);
    if (reply !== null && isFinal(reply)) {
      call.answer = reply;
      call.answeredAt = ++recorder.tick;
      return call;
    }
    await sleep(world, random.whole(20, 400) * (1 + Math.min(sent, 8)));
  }
  call.isGivenUp = true;
  return call;
}

/** What the service wants the keys of a caller's new calls to begin with, by the caller's last answer to a batch. */
function keyPrefixOf(calls: readonly Call[], bearer: string): string {
  const last = calls.findLast((call) =>
    call.bearer === bearer && call.request.op === "batch" && call.answer?.status === 200
  );
  return last === undefined ? "" : JSON.parse(last.answer?.body ?? "").data.keyPrefix;
}

function sleep({ time }: ClientWorld, ms: number): Promise<void> {
  return new Promise((resolve) => time.after(ms, WORLD, resolve));
}

/** Sends a call once; null where no answer came in time. */
function sendOnce(world: ClientWorld, call: Call): Promise<Reply | null> {
  const { time, random, faults } = world;
  return new Promise((resolve) => {
    const stopWaiting = time.after(random.pick([1_000, 5_000, 10_000]), WORLD, () => resolve(null));
    const process = random.pick(world.processes);
    deliver(world, call, process, (reply) => {
      stopWaiting();
      resolve(reply);
    });
    if (call.key !== null && !faults.isQuiet && random.chance(0.03)) {
      faults.note("request doubled");
      deliver(world, call, random.pick(world.processes), () => {});
    }
  });
}

function deliver(
  { time, faults, recorder }: ClientWorld,
  call: Call,
  process: SimProcess,
  answer: (reply: Reply | null) => void,
): void {
  const there = faults.way();
  if (there === null) return;
  const sentAt = ++recorder.tick;
  const sentOnMs = time.calendar();
  time.after(there, WORLD, () => {
    // There is no listener: the connect fails at once.
    if (!process.isAlive || !process.hasBegun) {
      time.after(there, WORLD, () => answer(null));
      return;
    }
    const attempt: Attempt = {
      call,
      id: `call-${call.no}-${call.attempts.length + 1}`,
      process: process.owner,
      sentAt,
      sentOnMs,
      arrivedMs: time.now,
      tookMs: Infinity,
      seenOnMs: [],
      turns: [],
      reply: null,
      repliedAt: null,
    };
    call.attempts.push(attempt);
    recorder.attempts.set(attempt.id, attempt);
    time.after(0, process.ownerFor(call.tenant), () => {
      void process.handle(attempt, wireOfRequest(call.request, call.tenant)).then((reply) => {
        attempt.reply = reply;
        attempt.repliedAt = ++recorder.tick;
        attempt.tookMs = time.now - attempt.arrivedMs;
        attempt.seenOnMs.push(time.calendar());
        const back = faults.way();
        if (back !== null) time.after(back, WORLD, () => answer(reply));
      });
    });
  });
}
