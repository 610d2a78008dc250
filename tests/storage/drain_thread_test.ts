// The threads of drainers on a server: one that closed its drainer is used again, by one other at a time.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { startDrainThread } from "../../src/storage/journal/drain_thread.ts";
import type { Drainer } from "../../src/storage/journal/drainer.ts";
import { firstSeq, sessionNameOf } from "../../src/storage/journal/ranges.ts";
import { encodeChanges } from "../../src/storage/rows/tables.ts";
import { inTime } from "../support/in_time.ts";
import { testServerUrl } from "../support/test_store.ts";
import { counter, withWriter } from "./sample.ts";

const payload = encodeChanges([{ verb: "put", table: "counters", row: counter() }]);

interface Opened {
  readonly drainer: Drainer;
  readonly term: number;
  readonly seq: number;
}

/** Runs work, and returns how many threads it started. */
async function startedBy(work: () => Promise<void>): Promise<number> {
  const real = globalThis.Worker;
  let started = 0;
  globalThis.Worker = class extends real {
    constructor(specifier: string | URL, options?: WorkerOptions) {
      super(specifier, options);
      started += 1;
    }
  };
  try {
    await work();
    return started;
  } finally {
    globalThis.Worker = real;
  }
}

Deno.test({
  name: "a thread that closed its drainer, twice at once, is used again by one drainer for its own term",
  ignore: testServerUrl() === null,
  // With two drainers for one thread each would wait for replies that the other one got.
  fn: () =>
    inTime(withWriter(async ({ store: { database, url }, lease, journalRows }) => {
      const opened: Opened[] = [];
      const open = async (): Promise<void> => {
        const term = lease.term + 1 + opened.length;
        const drainer = await startDrainThread(url as string, term);
        opened.push({ drainer, term, seq: firstSeq(term) + 1 });
      };
      const last = () => opened.at(-1) as Opened;
      // Other tests have terms of the same numbers on other databases of the server.
      const sessions = async ({ term }: Opened) =>
        (await database.query(
          "select from pg_stat_activity where application_name = $1 and datname = current_database()",
          [sessionNameOf(term)],
        )).length;
      try {
        // Earlier tests may have left some.
        while (await startedBy(open) === 0);
        const first = last();
        await Promise.all([first.drainer.close(), first.drainer.close()]);
        // The server takes a moment to end a session that was closed.
        while (await sessions(first) > 0) await new Promise((resolve) => setTimeout(resolve, 5));

        assert.equal(await startedBy(open), 0, "it is used again");
        const second = last();
        assert.equal(await startedBy(open), 1, "by one");
        await first.drainer.close();
        await assert.rejects(first.drainer.drain([second.seq], 0), Unavailable);
        assert.equal(await sessions(second), 1);

        await database.query("insert into journal (seq, payload) values ($1::bigint, $2)", [
          second.seq,
          payload,
        ]);
        second.drainer.keep({ seq: second.seq, payload });
        await second.drainer.drain([second.seq], 0);
        assert.equal(await journalRows(), 0);
      } finally {
        await Promise.all(opened.map(({ drainer }) => drainer.close()));
      }
    })),
});
