// Records the turn and the process that served each request, when, on what clock, and the batch with its changes. It
// hooks the gate and the realm's clock from outside the product. Checkers use the recorded order of turns as a hint and
// verify it against the answers.

import { type Batch, Gate } from "../../actors/gate.ts";
import type { RowChange } from "../../actors/port.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { Merge, User } from "../../src/domain/state/user.ts";
import type { Message as CallMessage } from "../../routes/http/messages.ts";
import { AppRealm, type Caller, type Registry } from "../../src/tenant/registry.ts";
import { NodeWatch } from "./checks/nodes.ts";
import type { Message } from "./database/server.ts";
import { type Attempt, isFinal } from "./history.ts";
import type { Owner, VirtualTime } from "./time.ts";

/** One turn, or one other step that wrote. */
export interface Turn {
  /** Its place among all that was noted: where it looked at the clock. */
  readonly order: number;
  /** Where it made its changes: there too, but a merge reads tables between, and others have turns meanwhile. */
  decidedAt: number;
  /** The realm's clock. */
  readonly now: Millis;
  /** The calendar at that moment. */
  readonly lookedAtMs: number;
  /** The calendar where it made its changes. */
  wroteAtMs: number;
  readonly process: Owner;
  readonly attempt: Attempt | null;
  changes: readonly RowChange[];
  batch: NotedBatch | null;
}

/** A batch with its turns and its outcome. */
export interface NotedBatch {
  readonly turns: Turn[];
  /** When it became durable; null while it is not. */
  durableAt: number | null;
}

/** Notes turns while it is installed. */
export class Recorder {
  /** Counts everything that has an order: calls, turns, returns. */
  tick = 0;
  /** Every sending of a call, by its id. */
  readonly attempts = new Map<string, Attempt>();
  /** Called with each batch as it becomes durable, in order. */
  onDurable: (store: number, batch: NotedBatch, payload: string) => void = () => {};
  /** What is seen of nodes. */
  readonly nodes: NodeWatch;
  readonly #time: VirtualTime;
  readonly #batches = new WeakMap<Batch, NotedBatch>();
  /** What each gate has not sent yet, oldest first, by the part of a process in a database, which has one gate at a time. */
  readonly #unsent = new Map<Owner, { gate: Gate; batches: NotedBatch[] }>();
  /** By database and number. */
  readonly #flying = new Map<string, NotedBatch>();
  #last: Turn | null = null;

  constructor(time: VirtualTime) {
    this.#time = time;
    this.nodes = new NodeWatch(time);
  }

  /** The caller of a request, with a realm that notes when its clock is read. */
  callerFor(caller: Caller, attempt: Attempt): Caller {
    attempt.seenOnMs.push(this.#time.calendar());
    // It has no turn of its own, and what it moves is the realm itself.
    if (attempt.call.request.op === "testClock") return caller;
    const { realm } = caller;
    const note = (now: Millis) => this.#noteTurn(attempt, now);
    const noting = Object.create(realm, {
      realm: { value: realm.realm },
      mode: { value: realm.mode },
      cell: { value: realm.cell },
      catalog: { get: () => realm.catalog },
      caps: { get: () => realm.caps },
      now: {
        value: () => {
          const now = realm.now();
          note(now);
          return now;
        },
      },
    }) as AppRealm;
    return { ...caller, realm: noting };
  }

  /** Looks on until the returned function is called. */
  install(): () => void {
    const { add } = Gate.prototype;
    // deno-lint-ignore no-this-alias -- the gate's method needs both
    const recorder = this;
    Gate.prototype.add = function (this: Gate, changes, ...stretches) {
      const batch = add.call(this, changes, ...stretches);
      recorder.#noteChanges(this, batch, changes);
      return batch;
    };
    // A turn that no request asked for reads the clock of its realm, too.
    const { now } = AppRealm.prototype;
    AppRealm.prototype.now = function (this: AppRealm) {
      recorder.#last = null;
      return now.call(this);
    };
    const leaveNodes = this.nodes.install();
    return () => {
      leaveNodes();
      Gate.prototype.add = add;
      AppRealm.prototype.now = now;
    };
  }

  /** A process sends a message to the database; an append takes the oldest of its batches that are not sent yet. */
  sees(store: number, message: Message, process: Owner): void {
    this.nodes.sees(message);
    if (message.kind !== "query" || !message.text.startsWith("insert into journal")) return;
    const seq = Number(message.params[0]);
    const batch = this.#unsent.get(process)?.batches.shift();
    if (batch === undefined) throw new Error("An append without a batch");
    this.#flying.set(`${store} ${seq}`, batch);
  }

  /** A batch is in the journal. */
  durable(store: number, seq: number, payload: string): void {
    const batch = this.#flying.get(`${store} ${seq}`);
    if (batch === undefined) throw new Error("A batch in the journal that no process sent");
    batch.durableAt = ++this.tick;
    this.onDurable(store, batch, payload);
  }

  /** The request that asked for a merge: it reads the clock once, when its users are paused. */
  #mergeOf(changes: readonly RowChange[]): Attempt | null {
    const merge = changes.find((change) => change.table === "merges");
    if (merge === undefined) return null;
    // A user who becomes an alias was not an alias before, so the call named the user by this id.
    const from = changes.find(({ table, row }) =>
      table === "users" && (row as User).key === (merge.row as Merge).fromKey
    )?.row as User | undefined;
    const isAsking = ({ call: { request: { op, input }, tenant }, turns, reply }: Attempt) =>
      op === "alias" && input["from"] === from?.id && tenant.realm === from?.realm &&
      turns.at(-1)?.process === this.#time.current && (reply === null || !isFinal(reply));
    // An earlier sending may have looked at the clock and lost its merge since.
    const lookedAt = ({ turns }: Attempt) => turns.at(-1)?.order ?? 0;
    const [attempt] = [...this.attempts.values()].filter(isAsking).sort((a, b) => lookedAt(b) - lookedAt(a));
    if (attempt === undefined) throw new Error("A merge that no call asked for");
    return attempt;
  }

  #noteTurn(attempt: Attempt, now: Millis): void {
    const process = this.#time.current;
    const order = ++this.tick;
    const wroteAtMs = this.#time.localCalendar();
    const noted = { order, decidedAt: order, now, lookedAtMs: wroteAtMs, wroteAtMs, process };
    const turn: Turn = { ...noted, attempt, changes: [], batch: null };
    attempt.turns.push(turn);
    this.#last = turn;
  }

  #noteChanges(gate: Gate, batch: Batch, changes: readonly RowChange[]): void {
    const process = this.#time.current;
    let noted = this.#batches.get(batch);
    if (noted === undefined) {
      noted = { turns: [], durableAt: null };
      this.#batches.set(batch, noted);
      let unsent = this.#unsent.get(process);
      if (unsent?.gate !== gate) {
        unsent = { gate, batches: [] };
        this.#unsent.set(process, unsent);
      }
      unsent.batches.push(noted);
    }
    const merging = this.#mergeOf(changes);
    if (merging !== null) {
      const turn = merging.turns.at(-1) as Turn;
      turn.batch = noted;
      turn.changes = changes.slice();
      turn.decidedAt = ++this.tick;
      turn.wroteAtMs = this.#time.localCalendar();
      noted.turns.push(turn);
      return;
    }
    const isOfTurn = changes.some(({ table }) => table !== "idempotency");
    const last = isOfTurn ? this.#last : null;
    this.#last = null;
    // What fell due before a merge is no part of it.
    if (last !== null && last.attempt?.call.request.op !== "alias") {
      last.changes = changes.slice();
      last.batch = noted;
      noted.turns.push(last);
      return;
    }
    const now = this.#time.localCalendar();
    const order = ++this.tick;
    noted.turns.push({
      order,
      decidedAt: order,
      now,
      lookedAtMs: now,
      wroteAtMs: now,
      process,
      attempt: null,
      changes: changes.slice(),
      batch: noted,
    });
  }
}

/**
 * A registry that answers `callerFor` in place of the caller itself. In a call that another node has passed on, the
 * sending's id follows the key's (`nameSending`).
 */
export function observedRegistry(
  registry: Registry,
  observe: (caller: Caller, sendingId: string | null) => Caller,
): Registry {
  return new Proxy(registry, {
    get(target, name) {
      if (name === "authenticate") {
        return (key: string) => {
          const caller = target.authenticate(key);
          return caller === null ? null : observe(caller, null);
        };
      }
      if (name === "callerById") {
        return (named: string) => {
          const [keyId = "", sendingId = null] = named.split(BEHIND);
          const caller = target.callerById(keyId);
          return caller === null ? null : observe(caller, sendingId);
        };
      }
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const BEHIND = "\n";

/** A call between processes, with the id of its sending, if it has a key, where `observedRegistry` looks for it. */
export function nameSending(passed: unknown): unknown {
  const [id, version, sendingId, nodes, sender, isPart] = passed as CallMessage;
  if (sender === null) return passed;
  const [keyId, ...rest] = sender;
  return [id, version, sendingId, nodes, [`${keyId}${BEHIND}${sendingId}`, ...rest], isPart];
}
