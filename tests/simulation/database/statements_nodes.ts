// Statements of nodes and cells: joining, beats, locks, owners. Ages are measured by the server's clock without leaps:
// a calendar that leaps ahead by a month doesn't make a node silent for a month.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import type { Lock } from "./locks.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { ServerSession } from "./server.ts";
import type { Effect, Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";

const DAY_MS = 24 * 3_600_000;
const NOTHING: Fields[] = [];

function read(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "read", run }];
}

function write(start: string, make: (params: readonly Param[], session: ServerSession) => Effect): Entry {
  return [start, { kind: "write", make }];
}

/** The lock of one number. */
function lockOf(id: Param | undefined, isShared = false): Lock {
  return { key: `lock ${id}`, isShared };
}

/** The lock of two numbers. */
function pairLock(kind: Param | undefined, id: Param | undefined): Lock {
  return { key: `lock ${kind} ${id}`, isShared: false };
}

function cellLock(cell: number, isShared: boolean): Lock {
  return { key: `cell ${cell}`, isShared };
}

const LOCKS: readonly Entry[] = [
  ...[true, false].map((isShared): Entry => [
    `take a${isShared ? " shared" : ""} lock: select pg_try_advisory_lock${
      isShared ? "_shared" : ""
    }($1::bigint) as locked`,
    {
      kind: "session",
      run(server, session, [id]) {
        const lock = lockOf(id, isShared);
        const locked = server.advisory.isFree(lock, session);
        if (locked) server.advisory.take(lock, session);
        return [{ locked }];
      },
    },
  ]),
  ...[true, false].map((isShared): Entry => [
    `release a${isShared ? " shared" : ""} lock: select pg_advisory_unlock${
      isShared ? "_shared" : ""
    }($1::bigint)`,
    {
      kind: "session",
      run(server, session, [id]) {
        server.giveAdvisory(lockOf(id, isShared), session);
        return [{}];
      },
    },
  ]),
  ["take a lock of a kind: select pg_try_advisory_lock($1::int, $2::int) as locked", {
    kind: "session",
    run(server, session, [kind, id]) {
      const lock = pairLock(kind, id);
      const locked = server.advisory.isFree(lock, session);
      if (locked) server.advisory.take(lock, session);
      return [{ locked }];
    },
  }],
  ["end a lock's session: select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a", {
    kind: "session",
    run(server, session, [kind, id, validMs]) {
      const { tables } = server;
      const silent = new Set(
        tables.list("members", ({ seen_at }) => Number(seen_at) < tables.time.now - Number(validMs))
          .map(({ term }) => `holdfast ${term}`),
      );
      const lock = pairLock(kind, id);
      server.endWhere(session, (other) => silent.has(other.name) && server.advisory.holds(lock, other));
      return [];
    },
  }],
  ["release a lock of a kind: select pg_advisory_unlock($1::int, $2::int)", {
    kind: "session",
    run(server, session, [kind, id]) {
      server.giveAdvisory(pairLock(kind, id), session);
      return [{}];
    },
  }],
  [
    "take cells: select cell from unnest($2::text::int[]) as asked(cell) where pg_try_advisory_lock($1::int, cell)",
    {
      kind: "session",
      run(server, session, [kind, cells]) {
        const free = numbersOf(cells).filter((cell) => server.advisory.isFree(pairLock(kind, cell), session));
        for (const cell of free) server.advisory.take(pairLock(kind, cell), session);
        return free.map((cell) => ({ cell }));
      },
    },
  ],
  ["free cells: select pg_advisory_unlock($1::int, cell) from unnest($2::text::int[]) as held(cell)", {
    kind: "session",
    run(server, session, [kind, cells]) {
      for (const cell of numbersOf(cells)) server.giveAdvisory(pairLock(kind, cell), session);
      return NOTHING;
    },
  }],
];

const JOINING: readonly Entry[] = [
  read("index of open holds: select to_regclass('open_reservations_id')", () => [{ isThere: false }]),
  read(
    "whether user keys are in a sequence: select keys_in_sequence as ready from lease",
    ({ keysInSequence }) => [{ ready: keysInSequence }],
  ),
  write("next term: insert into lease (term) values (1)", () => (tables) => [{ term: ++tables.terms }]),
  write("keep user keys in a sequence: insert into lease (term, keys_in_sequence)", () => (tables) => {
    tables.keysInSequence = true;
    return NOTHING;
  }),
  write("set the sequence of user keys: select setval('user_keys'", () => (tables) => {
    tables.userKeys = Math.max(0, ...tables.list("users").map(({ key }) => key as number)) + 1;
    return NOTHING;
  }),
  write("next user keys: select nextval('user_keys') as first", () => (tables) => {
    tables.userKeys = tables.userKeys === 0 ? 1 : tables.userKeys + 1000;
    return [{ first: tables.userKeys }];
  }),
  read(
    'identity of the cluster: select cluster_id as "clusterId", secret from registry',
    ({ clusterId }) => [{
      clusterId,
      secret: `${clusterId}-cluster-secret`,
    }],
  ),
  write("remove old members: delete from members where coalesce(ended_at, seen_at)", () => (tables) => {
    const before = tables.time.now - DAY_MS;
    tables.remove(
      "members",
      ({ term, ended_at, seen_at }) =>
        Number(ended_at ?? seen_at) < before &&
        tables.list("cells", (cell) => cell.term === term).length === 0,
    );
    return NOTHING;
  }),
  write(
    "join: insert into members (term, address, share,",
    ([term, address, share, fingerprints]) => (tables) => {
      const { now } = tables.time;
      tables.put("members", String(term), {
        term: Number(term),
        address: address as string,
        share: Number(share),
        fingerprints: fingerprints as string,
        registry_version: -1,
        started_at: now,
        seen_at: now,
        ended_at: null,
      });
      return NOTHING;
    },
  ),
  write("leave: update members set ended_at = clock_timestamp()", ([term]) => (tables) => {
    tables.update("members", (row) => row.term === term && row.ended_at === null, {
      ended_at: tables.time.now,
    });
    return NOTHING;
  }),
  write(
    "beat: update members set seen_at = clock_timestamp(), share = $2",
    ([term, share, version], { settings }) => (tables) => {
      if ((settings.get("holdfast.seq") ?? "") === "") return NOTHING;
      const values = { seen_at: tables.time.now, share: Number(share), registry_version: Number(version) };
      if (tables.update("members", (row) => row.term === term && row.ended_at === null, values) === 0) {
        return NOTHING;
      }
      // A process that follows this clock sees the calendar's leaps at once (`clock.ts`).
      return [{ version: tables.version, now: Math.floor(tables.time.unleapt) }];
    },
  ),
  // The simulated server's clock never goes back, so nothing follows from this.
  read("times of heartbeats: select ceil(extract(epoch from greatest(max(seen_at)", (tables) => [{
    seenMs: Math.max(0, ...tables.list("members").map(({ seen_at }) => Number(seen_at))),
    nowMs: tables.time.now,
  }]),
  read("nodes: select term, address, share, fingerprints, registry_version", (tables) => {
    const named = new Set(tables.list("cells").map(({ term }) => term));
    const { now } = tables.time;
    return tables.list("members", ({ term, ended_at }) => ended_at === null || named.has(term as number))
      .sort(by("term")).map((row) => ({
        ...row,
        registryVersion: row.registry_version as number,
        livedMs: Math.floor(now - Number(row.started_at)),
        silentMs: Math.floor(now - Number(row.seen_at)),
        hasEnded: row.ended_at !== null,
      }));
  }),
  read(
    "count members of an older registry version: select count(*) as members from members where ended_at is null and registry_version <",
    (
      tables,
      [version, validMs],
    ) => {
      const since = tables.time.now - Number(validMs);
      const { length } = tables.list(
        "members",
        ({ ended_at, registry_version, seen_at }) =>
          ended_at === null && Number(registry_version) < Number(version) && Number(seen_at) > since,
      );
      return [{ members: length }];
    },
  ),
];

const CELL_ROWS: readonly Entry[] = [
  read('cells: select cell, term, clock_ms as "clockMs", side, moves_to as "movesTo"', (tables, [cells]) => {
    const asked = cells === null ? null : new Set(numbersOf(cells));
    return tables.list("cells", ({ cell }) => asked === null || asked.has(cell as number)).sort(by("cell"))
      .map((row) => ({ ...row, clockMs: row.clock_ms as number, movesTo: null, isMoved: false }));
  }),
  ["take over cells: update cells set term = $3::bigint, side = null, clock_ms = greatest", {
    kind: "write",
    locks: ([cells]) => numbersOf(cells).map((cell) => cellLock(cell, false)),
    make: ([cells, before, term, clockMs]) => (tables) =>
      numbersOf(cells).flatMap((cell) => {
        const [row] = tables.list("cells", (each) => each.cell === cell && each.term === before);
        if (row === undefined) return [];
        const clock = Math.max(Number(row.clock_ms), Number(clockMs));
        tables.update("cells", (each) => each.cell === cell, {
          term: Number(term),
          side: null,
          clock_ms: clock,
        });
        return [{ cell, now: tables.time.calendar() }];
      }),
  }],
  ["give up cells: update cells c set term = null, clock_ms = greatest", {
    kind: "write",
    locks: ([, , cells]) => numbersOf(cells).map((cell) => cellLock(cell, false)),
    make: ([term, clockMs, cells, sides, after, upTo]) => (tables) => {
      const isLeft = (seq: number) => seq > Number(after) && seq <= Number(upTo);
      if ([...tables.journal.keys()].some(isLeft)) return NOTHING;
      const given = textsOf(sides);
      const freed: Fields[] = [];
      for (const [place, cell] of numbersOf(cells).entries()) {
        for (const row of tables.list("cells", (each) => each.cell === cell && each.term === term)) {
          const values = { term: null, clock_ms: Math.max(Number(row.clock_ms), Number(clockMs)) };
          tables.update("cells", (each) => each.cell === cell, { ...values, side: given[place] ?? null });
          freed.push({ cell });
        }
      }
      return freed;
    },
  }],
  ["lock a cell row: select 1 from cells where cell = $1::int and term = $2::bigint for share", {
    kind: "write",
    locks: ([cell]) => [cellLock(Number(cell), true)],
    make: ([cell, term]) => (tables) =>
      tables.list("cells", (row) => row.cell === cell && row.term === term).map(() => ({ one: 1 })),
  }],
  [
    "lock cell rows: select cell from cells where cell = any($1::text::int[]) and term = $2::bigint order by cell for share",
    {
      kind: "write",
      locks: ([cells]) => numbersOf(cells).map((cell) => cellLock(cell, true)),
      make: ([cells, term]) => (tables) => {
        const asked = new Set(numbersOf(cells));
        return tables.list("cells", (row) => asked.has(row.cell as number) && row.term === term)
          .map(({ cell }) => ({ cell: cell as number }));
      },
    },
  ],
];

export const MEMBERS: readonly Entry[] = [...LOCKS, ...JOINING, ...CELL_ROWS];
