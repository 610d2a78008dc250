// Registers the sweeps with Deno.cron. Correctness never waits for them: every decision settles what is due first.

import { sweepLogs } from "src/log_retention.ts";
import { log, messageOf } from "src/log.ts";
import { runErasures } from "src/privacy/erasure.ts";
import type { Service, Serving } from "src/service.ts";
import { moveAllHistory } from "src/history.ts";
import { sweepDue, sweepIdempotency } from "src/sweeps.ts";

/** Runs the sweeps while this process is the writer. */
export function registerSweeps(service: Service): void {
  Deno.cron("settle what is due", "* * * * *", () => run(service, "due", sweepDue));
  Deno.cron(
    "look after the store",
    "* * * * *",
    () => run(service, "store", ({ database }) => database.maintain()),
  );
  Deno.cron("move history of merged users", "* * * * *", () => run(service, "history", moveAllHistory));
  Deno.cron("erase people", "* * * * *", () => run(service, "erasures", runErasures));
  Deno.cron("remove old prompt logs", "23 * * * *", () => run(service, "prompt logs", sweepLogs));
  Deno.cron("forget old first answers", "17 * * * *", () => run(service, "idempotency", sweepIdempotency));
}

async function run(
  service: Service,
  name: string,
  sweep: (serving: Serving) => Promise<unknown>,
): Promise<void> {
  const { serving } = service;
  if (serving === null) return;
  try {
    await sweep(serving);
  } catch (error) {
    log("warn", "A sweep did not finish", { sweep: name, error: messageOf(error) });
  }
}
