// Statements of the writer's lease, of its journal and of the drain.

import { LEASE_LIMITS } from "../../../src/process/limits.ts";
import type { TableSpec } from "../../../src/storage/rows/columns.ts";
import { TABLES } from "../../../src/storage/rows/tables.ts";
import { numbersOf } from "./params.ts";
import type { Statement } from "./statements.ts";

const SEQ = "holdfast.seq";

const nothing: Statement = { kind: "session", run: () => [] };

export const LEASE: readonly (readonly [start: string, statement: Statement])[] = [
  ["select pg_try_advisory_lock", {
    kind: "session",
    run(server, session) {
      server.leaseHolder ??= session;
      return [{ locked: server.leaseHolder === session }];
    },
  }],
  ["select (extract(epoch from clock_timestamp() - pg_postmaster_start_time())", {
    kind: "session",
    run: (server) => [{ up_ms: Math.floor(Math.min(server.upMs, Number.MAX_SAFE_INTEGER)) }],
  }],
  ["insert into lease (term)", {
    kind: "write",
    make: () => (tables) => [{ term: ++tables.terms }],
  }],
  ["select set_config('holdfast.seq', $1", {
    kind: "session",
    run(_server, session, [value]) {
      session.settings.set(SEQ, String(value));
      return [];
    },
  }],
  ["set idle_session_timeout", {
    kind: "session",
    run(server, session) {
      server.setIdleTimeout(session, LEASE_LIMITS.sessionIdleMs);
      return [];
    },
  }],
  ["set idle_in_transaction_session_timeout", nothing],
  ["create temp table", nothing],
  ["set local lock_timeout", {
    kind: "session",
    run(_server, session) {
      session.lockTimeoutMs = LEASE_LIMITS.staleDrainMs;
      return [];
    },
  }],
  ["select pg_terminate_backend", {
    kind: "session",
    run(server, session) {
      server.endStaleWriters(session);
      return [];
    },
  }],
  ["insert into journal (seq, payload) select", {
    kind: "append",
    run(tables, session, [seq, payload, before, next]) {
      if (session.settings.get(SEQ) !== before) return null;
      session.settings.set(SEQ, String(next));
      if (tables.journal.has(Number(seq))) throw new Error("duplicate key in journal");
      tables.journal.set(Number(seq), String(payload));
      return Number(seq);
    },
  }],
  ["select current_setting('holdfast.seq'", {
    kind: "session",
    run: (_server, session) => [{ seq: session.settings.get(SEQ) ?? null }],
  }],
  ["select seq, payload from journal order by seq", {
    kind: "write",
    make: ([limit]) => (tables) =>
      [...tables.journal].sort(([a], [b]) => a - b).slice(0, Number(limit))
        .map(([seq, payload]) => ({ seq, payload })),
  }],
  ["select seq from journal limit 1", {
    kind: "read",
    run: ({ journal }) => [...journal.keys()].slice(0, 1).map((seq) => ({ seq })),
  }],
  ["delete from journal where seq = any", {
    kind: "write",
    make: ([seqs]) => (tables) => tables.takeFromJournal(numbersOf(seqs)).map((seq) => ({ seq })),
  }],
  ...TABLES.filter(({ mutable }) => mutable.length > 0).map((spec) => upsert(spec)),
];

function upsert(spec: TableSpec): readonly [string, Statement] {
  const list = spec.columns.join(", ");
  return [`insert into ${spec.name} (${list}) select ${list} from staged_${spec.name}`, {
    kind: "write",
    make(_params, { staged }) {
      const lines = staged.get(spec.name) ?? [];
      return (tables) => {
        tables.copy(spec, lines, false);
        return [];
      };
    },
  }];
}
