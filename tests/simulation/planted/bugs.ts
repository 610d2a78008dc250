// Bugs to plant, one at a time: each changes a piece of the product from outside, at a seam, and takes the change back.
// The product has no switch for any of them. A simulator that does not find them proves nothing by finding nothing.

import { Actor } from "../../../actors/actor.ts";
import { Budget } from "../../../actors/budget.ts";
import { Gate } from "../../../actors/gate.ts";
import {
  Idempotency,
  type IdempotentCall,
  type IdempotentOutcome,
  type WireAnswer,
} from "../../../actors/idempotency.ts";
import { Mailbox } from "../../../actors/mailbox.ts";
import type { RowChange } from "../../../actors/port.ts";
import { Term } from "../../../actors/term.ts";
import { InsideKeeper, write } from "../../../routes/http/answer.ts";
import { ExpiryQueue } from "../../../src/domain/state/expiry_queue.ts";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { TRANSITIONS } from "../../../src/domain/state/reservation.ts";
import { type Change, UserState } from "../../../src/domain/state/user.ts";
import { CELL_LOCKS, Writer } from "../../../src/storage/journal/writer.ts";
import { Registry } from "../../../src/tenant/registry.ts";
import { LEASE_LIMITS } from "../../../src/process/limits.ts";
import { rest } from "../../../src/process/rest.ts";
import { Locks } from "../database/locks.ts";
import { SimDatabase } from "../database/connection.ts";
import { SimTables } from "../database/tables.ts";
import { SimProcess } from "../process.ts";
import { CLUSTER_BUGS } from "./cluster_bugs.ts";
import { DATABASE_BUGS } from "./database_bugs.ts";
import { MONEY_BUGS } from "./money_bugs.ts";
import { OVERAGE_BUGS } from "./overage_bugs.ts";
import { type PlantedBug, replace, replaceGetter } from "./plant.ts";
import { STRIPE_BUGS } from "./stripe_bugs.ts";
import { TREE_BUGS } from "./tree_bugs.ts";
import { WEBHOOK_BUGS } from "./webhook_bugs.ts";
import { WINDOW_BUGS } from "./window_bugs.ts";

function doubled(plan: PlanDocument): PlanDocument {
  return { ...plan, limits: plan.limits.map((group) => ({ ...group, quota: group.quota * 2 })) };
}

/** Trusts the last drain of a term: where it left nothing in the journal, the term is not replayed. */
function trustTheLastDrain(): () => void {
  const appended = new Map<number, number>();
  const empty = new Set<number>();
  const takes = [
    replace(Writer.prototype, "append", (append) =>
      async function (this: Writer, changes) {
        empty.delete(this.term);
        const batch = await append.call(this, changes);
        appended.set(this.term, batch.seq);
        return batch;
      }),
    replace(Writer.prototype, "drain", (drain) =>
      async function (this: Writer, batches) {
        await drain.call(this, batches);
        if (batches.at(-1)?.seq === appended.get(this.term)) empty.add(this.term);
      }),
    replace(Writer.prototype, "replay", (replay) =>
      async function (this: Writer, term) {
        if (!empty.has(term)) await replay.call(this, term);
      }),
  ];
  return () => {
    for (const takeBack of takes) takeBack();
  };
}

export const PLANTED: readonly PlantedBug[] = [
  {
    name: "an answer leaves before its changes are appended",
    plant: () =>
      replace(Gate.prototype, "add", (add) =>
        function (this: Gate, changes) {
          const batch = add.call(this, changes);
          batch.open();
          return batch;
        }),
  },
  {
    name: "a batch is drained again after a takeover",
    calmMs: 30_000,
    plant() {
      const keep = replace(SimTables.prototype, "takeFromJournal", () =>
        function (this: SimTables, seqs) {
          return seqs.filter((seq) => this.journal.has(seq));
        });
      const ignore = replace(SimTables.prototype, "copy", (copy) =>
        function (this: SimTables, spec, lines) {
          copy.call(this, spec, lines, false);
        });
      return () => {
        keep();
        ignore();
      };
    },
  },
  {
    name: "holds never lapse",
    plant: () => replace(ExpiryQueue.prototype, "due", () => () => []),
  },
  {
    name: "a load leaves out the running window",
    plant: () =>
      replace(
        SimDatabase.prototype,
        "query",
        (query) =>
          async function (this: SimDatabase, text: string, params: never) {
            const rows = await query.call(this, text, params);
            return text.startsWith("select * from counters") ? [] : rows;
          } as SimDatabase["query"],
      ),
  },
  {
    name: "a link from the anonymous side is walked",
    plant: () =>
      replace(
        SimDatabase.prototype,
        "query",
        (query) =>
          async function (this: SimDatabase, text: string, params: never) {
            const rows = await query.call(this, text, params);
            if (!text.startsWith("select distinct l.from_id")) return rows;
            const named = [...String((params as unknown[])[1]).matchAll(/gone-(\d+)/g)];
            return [...rows, ...named.map(([, no]) => ({ id: `user-${no}` }))];
          } as SimDatabase["query"],
      ),
  },
  {
    name: "refunds go to balances in the wrong order",
    plant: () =>
      replace(
        UserState.prototype,
        "apply",
        (apply) =>
          function (this: UserState, changes: readonly Change[]) {
            for (const change of changes) {
              if (change.table === "reservations") (change.row.credits as unknown[]).reverse();
            }
            apply.call(this, changes);
          },
      ),
  },
  {
    name: "users do not stand still while they are merged",
    plant: () =>
      replace(
        Mailbox.prototype,
        "run",
        (run) =>
          function <T>(this: Mailbox, turn: () => T, prefetch: (() => Promise<void> | null) | null = null) {
            if (prefetch === null || String(turn).replaceAll(" ", "") !== "()=>{}") {
              return run.call(
                this,
                turn,
                prefetch,
              );
            }
            return Promise.resolve(prefetch()).then(turn);
          } as Mailbox["run"],
      ),
  },
  {
    name: "an idempotency key answers every caller that brings it",
    plant() {
      const known = new Map<string, WireAnswer>();
      return replace(Idempotency.prototype, "run", (run) =>
        async function <First extends WireAnswer>(
          this: Idempotency,
          call: IdempotentCall,
          first: () => Promise<First>,
        ): Promise<IdempotentOutcome<First>> {
          const answer = known.get(call.key);
          if (answer !== undefined) return { kind: "replayed", answer };
          const outcome = await run.call(this, call, first) as IdempotentOutcome<First>;
          if (outcome.kind === "first" && outcome.answer.status === 200) known.set(call.key, outcome.answer);
          return outcome;
        });
    },
  },
  {
    name: "the lease is not looked at before an answer",
    plant() {
      const limits = LEASE_LIMITS as { beatEveryMs: number };
      const { beatEveryMs } = limits;
      limits.beatEveryMs = 3_600_000;
      const look = replace(
        SimProcess.prototype,
        "handle",
        (handle) =>
          function (this: SimProcess, attempt, request) {
            const lease = this.parts[0]?.service.serving?.lease;
            if (lease !== undefined) Object.assign(lease, { isValid: () => true });
            return handle.call(this, attempt, request);
          },
      );
      return () => {
        limits.beatEveryMs = beatEveryMs;
        look();
      };
    },
  },
  {
    name: "the locks of cells are given to everybody",
    calmMs: 30_000,
    plant: () =>
      replace(Locks.prototype, "isFree", (isFree) =>
        function (this: Locks<unknown>, lock, holder) {
          return lock.key.startsWith(`lock ${CELL_LOCKS} `) || isFree.call(this, lock, holder);
        }),
  },
  {
    name: "first answers are not kept",
    plant: () =>
      replace(Gate.prototype, "add", (add) =>
        function (this: Gate, changes: readonly RowChange[]) {
          const others = changes.filter(({ table }) => table !== "idempotency");
          return add.call(this, others.length > 0 ? others : changes);
        }),
  },
  {
    name: "a first answer is kept after its effect",
    batches: true,
    plant: () =>
      replace(Gate.prototype, "add", (add) =>
        function (this: Gate, changes: readonly RowChange[]) {
          // What is left is the first answer of the whole batch, which comes in another append.
          const isOfPart = ({ table, row }: RowChange) =>
            table === "idempotency" && (row as { key: string }).key.includes("part:");
          return add.call(this, changes.filter((change) => !isOfPart(change)));
        }),
  },
  {
    name: "the events of all batches share their first answers",
    batches: true,
    plant: () =>
      replace(Idempotency.prototype, "begin", (begin) =>
        function (this: Idempotency, call) {
          const [part] = /^.part:\d+/.exec(call.key) ?? [];
          return begin.call(this, part === undefined ? call : { ...call, key: part, requestHash: part });
        }),
  },
  {
    name: "actors leave memory before the tables have their changes",
    plant: () =>
      replaceGetter(Actor.prototype, "isIdle", function (this: Actor) {
        return this.mailbox.isIdle;
      }),
  },
  {
    name: "a released hold can be committed",
    plant() {
      const released = TRANSITIONS.released as { commit: unknown };
      const { commit } = released;
      released.commit = { next: "committed", effect: "recharge" };
      return () => {
        released.commit = commit;
      };
    },
  },
  {
    name: "a term goes on after a failed write",
    plant: () => replace(Term.prototype, "fail", () => () => {}),
  },
  {
    name: "the drain loses a row now and then",
    plant() {
      let copied = 0;
      return replace(SimTables.prototype, "copy", (copy) =>
        function (this: SimTables, spec, lines, isNew) {
          copy.call(this, spec, lines.filter(() => ++copied % 50 !== 0), isNew);
        });
    },
  },
  { name: "a term whose last drain left nothing is not replayed", plant: trustTheLastDrain },
  {
    name: "a quota counts twice",
    plant: () =>
      replace(Registry.prototype, "admit", (admit) =>
        function (this: Registry, rows, version) {
          const catalogs = (rows.catalogs ?? []).map((applied) => ({
            ...applied,
            document: { ...applied.document, plans: (applied.document.plans ?? []).map(doubled) },
          }));
          admit.call(this, { ...rows, catalogs }, version);
        }),
  },
  {
    name: "the cap lets one operation more through",
    plant: () =>
      replace(Budget.prototype, "refusal", (refusal) =>
        function (this: Budget, caps, mode) {
          const more = (cap: number | null) => cap === null ? null : cap + 1;
          const { operationCap, testOperationCap } = caps;
          return refusal.call(
            this,
            { ...caps, operationCap: more(operationCap), testOperationCap: more(testOperationCap) },
            mode,
          );
        }),
  },
  {
    name: "operations are counted in memory alone",
    plant: () =>
      replace(
        Budget.prototype,
        "takeInto",
        () =>
          function (this: Budget, _batch, workspaceId, mode, operations) {
            this.take(workspaceId, mode, operations);
          },
      ),
  },
  {
    name: "a move of the test clock is not kept",
    plant: () =>
      replace(SimTables.prototype, "update", (update) =>
        function (this: SimTables, table, ...rest) {
          return table === "realms" ? 1 : update.call(this, table, ...rest);
        }),
  },
  {
    name: "the first answer of a move of the test clock is kept after the move",
    plant: () =>
      replace(InsideKeeper.prototype, "keep", () =>
        function (this: InsideKeeper<unknown>, _session, data) {
          this.written = write({ ok: true, data });
          return Promise.resolve();
        }),
  },
  {
    name: "a read that waits for the tables answers without them after a while",
    plant: () =>
      replace(Term.prototype, "flush", (flush) =>
        function (this: Term) {
          return Promise.race([flush.call(this), rest(20)]);
        }),
  },
  ...CLUSTER_BUGS.map((bug) => ({ ...bug, nodes: 3 })),
  ...DATABASE_BUGS,
  ...WEBHOOK_BUGS,
  ...STRIPE_BUGS,
  ...TREE_BUGS,
  ...WINDOW_BUGS,
  ...MONEY_BUGS,
  ...OVERAGE_BUGS,
];
