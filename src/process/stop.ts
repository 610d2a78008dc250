// How the process ends on a signal. When other processes serve the same database it hands them its cells and passes calls
// to them, so that no call fails; else new calls get a 503. Calls in flight get their answers, decisions are made durable
// and drained, and the exit status is 0.

import { PROCESS_LIMITS } from "./limits.ts";
import { linger } from "./linger.ts";
import type { Listener } from "./listener.ts";
import { log } from "./log.ts";
import { rest } from "./rest.ts";

/** How long handing over may take before the process stops as if it were alone. */
const LEAVE_MS = 5_000;
/** How long a process without cells still passes calls on: by then a balancer that asks `/readyz` sends it no more calls. */
const FRONT_MS = 5_000;
/** How long a stopping process answers new calls with 503. */
const LINGER_MS = 1_000;
/** How long it then waits for calls in flight before it ends them with 503. */
const CALLS_MS = 4_000;

/** The parts to stop. */
interface Stoppable {
  /** Hands the cells to other processes; false when there is no other process. */
  leave(): Promise<boolean>;
  /** Ends streams; their readers then connect to another process. */
  endStreams(): void;
  /** Answers new calls with 503 from now on, and ends streams. */
  refuseCalls(): void;
  /** Ends the calls in flight and makes decisions durable. */
  stop(): Promise<void>;
}

/** Stops in good order on the first SIGINT or SIGTERM. */
export function stopOnSignal(
  service: Stoppable,
  listeners: readonly Listener[],
  database: { close(): Promise<void> },
): void {
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    log("info", "Stopping");
    for (const listener of listeners) listener.endConnections();
    // A shutdown closes idle connections at once, even if a call is arriving on them. So each port stays open for a while, in
    // which such calls are passed on or answered with 503.
    if (await Promise.race([service.leave(), rest(LEAVE_MS).then(() => false)])) {
      log("info", "Others have the cells; passing calls on until the port closes");
      await linger(FRONT_MS);
      // Only now: a reader that reconnects at once must not come back here.
      service.endStreams();
      // What took long and has ended meanwhile.
      await Promise.race([service.leave(), rest(LINGER_MS)]);
    } else {
      service.refuseCalls();
      await linger(LINGER_MS);
    }
    const grace = rest(PROCESS_LIMITS.stopGraceMs - LINGER_MS);
    const shutdown = Promise.all(listeners.map((listener) => listener.shutdown()));
    // The service stops after the last call, so that its drain is the last one; a call that hangs must not delay it.
    await Promise.race([shutdown, rest(CALLS_MS)]);
    await Promise.race([Promise.all([shutdown, service.stop()]), grace]);
    await Promise.race([database.close(), grace]);
    Deno.exit(0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => void stop());
}
