// Statements of the session that appends, of the journal and of the drain.

import { LEASE_LIMITS } from "../../../src/process/limits.ts";
import type { Param } from "../../../src/storage/database.ts";
import type { TableSpec } from "../../../src/storage/rows/columns.ts";
import { firstSeq, lastSeq } from "../../../src/storage/journal/ranges.ts";
import { TABLES } from "../../../src/storage/rows/tables.ts";
import { numbersOf } from "./params.ts";
import type { Lock } from "./locks.ts";
import type { Entry, Statement } from "./statements.ts";

const SEQ = "holdfast.seq";

/** The lock of the journal range that has a batch. */
function rangeOf(seq: number): Lock {
  return { key: `journal ${Math.floor((seq - 1) / (lastSeq(0) - firstSeq(0)))}`, isShared: false };
}

const nothing: Statement = { kind: "session", run: () => [] };

export const JOURNAL: readonly Entry[] = [
  ["set the next sequence number: select set_config('holdfast.seq', $1", {
    kind: "session",
    run(_server, session, [value]) {
      session.settings.set(SEQ, String(value));
      return [];
    },
  }],
  ["name the session: select set_config('application_name', $1", {
    kind: "session",
    run(_server, session, [value]) {
      session.name = String(value);
      return [];
    },
  }],
  ["set the idle timeout of the session: set idle_session_timeout", {
    kind: "session",
    run(server, session) {
      server.setIdleTimeout(session, LEASE_LIMITS.sessionIdleMs);
      return [];
    },
  }],
  ["set the idle timeout of transactions: set idle_in_transaction_session_timeout", nothing],
  ["set the lock timeout of the transaction: select set_config('lock_timeout', $1, true)", nothing],
  ["turn planner methods off: select set_config(name, 'off', true) from unnest", nothing],
  ["create the staging tables: create temp table", nothing],
  ["set the lock timeout of the drain: set local lock_timeout", {
    kind: "session",
    run(_server, session) {
      session.lockTimeoutMs = LEASE_LIMITS.staleDrainMs;
      return [];
    },
  }],
  ["commit without waiting for the disk: set local synchronous_commit = off", {
    kind: "session",
    run(_server, session) {
      session.commitsLater = true;
      return [];
    },
  }],
  ["read one snapshot: set transaction isolation level repeatable read", {
    kind: "session",
    run(_server, session) {
      session.isSnapshot = true;
      return [];
    },
  }],
  [
    "end a node's sessions: select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1",
    {
      kind: "session",
      run(server, session, [name]) {
        server.endWhere(session, (other) => other.name === name);
        return [];
      },
    },
  ],
  ["end the session that holds the journal: select pg_terminate_backend(pid) from pg_locks", {
    kind: "session",
    run(server, session) {
      server.endWhere(session, ({ done }) => done.length > 0);
      return [];
    },
  }],
  ["append a batch: insert into journal (seq, payload) select", {
    kind: "append",
    run(tables, session, [seq, payload, before, next]) {
      if (session.settings.get(SEQ) !== before) return null;
      session.settings.set(SEQ, String(next));
      if (tables.journal.has(Number(seq))) throw new Error("duplicate key in journal");
      tables.journal.set(Number(seq), String(payload));
      return Number(seq);
    },
  }],
  ["the next sequence number: select current_setting('holdfast.seq'", {
    kind: "session",
    run: (_server, session) => [{ seq: session.settings.get(SEQ) ?? null }],
  }],
  [
    "batches: select seq, payload from journal where seq > $1::bigint and seq <= $2::bigint order by seq limit",
    {
      kind: "write",
      locks: ([from]) => [rangeOf(Number(from) + 1)],
      make: ([from, to, limit]) => (tables) =>
        [...tables.journal].filter(([seq]) => seq > Number(from) && seq <= Number(to))
          .sort(([a], [b]) => a - b).slice(0, Number(limit))
          .map(([seq, payload]) => ({ seq, payload })),
    },
  ],
  ["remove drained batches: delete from journal where seq = any", {
    kind: "write",
    locks: ([seqs]) => numbersOf(seqs).slice(0, 1).map(rangeOf),
    make: ([seqs]) => (tables) => tables.takeFromJournal(numbersOf(seqs)).map((seq) => ({ seq })),
  }],
  ...TABLES.filter(({ mutable }) => mutable.length > 0).flatMap((spec) => mergesOf(spec)),
];

function mergesOf(spec: TableSpec): Entry[] {
  const merge = (using: string, linesOf: (lines: string[], from: Param, to: Param) => string[]): Entry => [
    `write ${spec.name}: merge into ${spec.name} t using ${using} s on`,
    {
      kind: "write",
      make([from = null, to = null], { staged }) {
        const lines = linesOf(staged.get(spec.name) ?? [], from, to);
        return (tables) => {
          tables.copy(spec, lines, false);
          return [];
        };
      },
    },
  ];
  return [
    merge(`staged_${spec.name}`, (lines) => lines),
    merge(
      `(select * from staged_${spec.name} where ctid >= $1::text::tid and ctid < $2::text::tid)`,
      (lines, from, to) => lines.slice(pageOf(from), pageOf(to)),
    ),
    // The merge after this writes the other values.
    [`take over rows of ${spec.name}: with moved as ( update ${spec.name} t set`, {
      kind: "write",
      make([from, to], { staged }) {
        const lines = staged.get(spec.name) ?? [];
        const piece = from === undefined ? lines : lines.slice(pageOf(from), pageOf(to as Param));
        return (tables) => {
          tables.takeOver(spec, piece);
          return [];
        };
      },
    }],
    [`pages of staged ${spec.name}: select (pg_relation_size('staged_${spec.name}')`, {
      kind: "session",
      run: (_server, { staged }) => [{ pages: staged.get(spec.name)?.length ?? 0 }],
    }],
  ];
}

/** The page of a place in a table, "(page,0)"; a page of a temporary table has one line here. */
function pageOf(place: Param): number {
  return Number(String(place).slice(1).split(",")[0]);
}
