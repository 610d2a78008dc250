// How the process ends on a signal: calls in flight get their answers, what was decided is made durable and drained,
// and the exit status is 0.

import { PROCESS_LIMITS } from "./limits.ts";
import { linger } from "./linger.ts";
import type { Listener } from "./listener.ts";
import { log } from "./log.ts";

/** How long a stopping process goes on answering new calls with 503. */
const LINGER_MS = 1_000;
/** How long the writer then waits for calls in flight before it ends them with 503. */
const CALLS_MS = 4_000;

/** What is stopped. */
export interface Stoppable {
  /** From here on new calls are answered with 503. */
  refuseCalls(): void;
  /** Ends the calls in flight and makes durable what was decided. */
  stop(): Promise<void>;
}

/** Stops in good order on the first SIGINT or SIGTERM. */
export function stopOnSignal(
  service: Stoppable,
  listener: Listener,
  database: { close(): Promise<void> },
): void {
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    log("info", "Stopping");
    service.refuseCalls();
    const grace = after(PROCESS_LIMITS.stopGraceMs);
    // A shutdown closes idle connections at once, with whatever call is on its way on them. So the port stays open
    // for a moment in which such calls get their 503.
    await linger(LINGER_MS);
    const shutdown = listener.shutdown();
    // The service stops after the last call, so that its drain is the last one; a call that hangs must not delay it.
    await Promise.race([shutdown, after(CALLS_MS)]);
    await Promise.race([Promise.all([shutdown, service.stop()]), grace]);
    await Promise.race([database.close(), grace]);
    Deno.exit(0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => void stop());
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
