// Registers the sweeps with Deno.cron. Answers are right without them, since every decision settles first what is due.

import { log, messageOf } from "../../process/log.ts";
import type { SweepName } from "../../cluster/counts.ts";
import type { Stores } from "../../cluster/stores.ts";
import { runSweep } from "./sweeps.ts";

/** Runs the sweeps of this process's cells while it serves; those of one database do not wait for another. */
export function registerSweeps(service: Stores): void {
  Deno.cron("settle what is due", "* * * * *", () => run(service, "due"));
  Deno.cron("look after the store", "* * * * *", () => run(service, "store"));
  Deno.cron("move history of merged users", "* * * * *", () => run(service, "history"));
  Deno.cron("add up use by day", "* * * * *", () => run(service, "daily_use"));
  Deno.cron("erase people", "* * * * *", () => run(service, "erasures"));
  Deno.cron("remove old prompt logs", "23 * * * *", () => run(service, "prompt_logs"));
  Deno.cron("remove old counts of refused calls", "29 * * * *", () => run(service, "refusals"));
  Deno.cron("remove old messages of webhooks", "41 * * * *", () => run(service, "messages"));
  Deno.cron("remove payments of Stripe that belong to nothing", "53 4 * * *", () => run(service, "stripe"));
  Deno.cron("remove old runs", "47 * * * *", () => run(service, "runs"));
  Deno.cron("remove passed slots of rates", "*/10 * * * *", () => run(service, "rates"));
  Deno.cron("retry messages of Stripe", "* * * * *", () => run(service, "stripe_retry"));
  Deno.cron("remove old failed sign-ins", "37 * * * *", () => run(service, "failed_sign_ins"));
  Deno.cron("store last uses of API keys", "* * * * *", () => run(service, "key_uses"));
  Deno.cron("remove old failed requests", "43 * * * *", () => run(service, "failed_requests"));
  Deno.cron("remove rows of cells on another database", "* * * * *", () => run(service, "moved"));
  Deno.cron("forget old first answers", "17 * * * *", () => run(service, "idempotency"));
}

async function run({ terms }: Stores, sweep: SweepName): Promise<void> {
  await Promise.all(terms.map(async (serving) => {
    try {
      await runSweep(serving, sweep);
    } catch (error) {
      const store = serving.storeName === null ? {} : { store: serving.storeName };
      log("warn", "A sweep did not finish", { sweep, error: messageOf(error), ...store });
    }
  }));
}
