// Liveness: once faults are over, everything that was begun ends: journal, holds, history moves, erasures. Every call
// that reached a live process has its answer.

import type { Checker } from "../watch.ts";

/** Looks for what has not ended. */
export function livenessChecker(): Checker {
  return {
    name: "liveness",
    atEnd({ server: { tables }, calls }) {
      const forgotten = calls.flatMap(({ attempts }) => attempts)
        .find(({ reply, process }) => reply === null && process.isAlive);
      if (forgotten !== undefined) {
        throw new Error(`call ${forgotten.call.no} has no answer of ${forgotten.process.name}`);
      }
      if (tables.journal.size > 0) throw new Error(`${tables.journal.size} batches are left in the journal`);
      const [hold] = tables.list("reservations", ({ status }) => status === "held");
      if (hold !== undefined) throw new Error(`${hold.id} is still held`);
      const [move] = tables.list("history_moves");
      if (move !== undefined) throw new Error(`the history of user ${move.user_key} has not moved`);
      const [job] = tables.list("erasure_jobs", ({ status }) => status !== "completed");
      if (job !== undefined) throw new Error(`the erasure ${job.id} is ${job.status}`);
    },
  };
}
