// A short wait in which a stopping process still answers new calls.

import { rest } from "./rest.ts";

const TURN_MS = 50;

/**
 * Waits in short turns and counts the turns, not the time: the embedded database works in this thread and can block
 * the event loop for longer than the wait. Each turn is one in which connections are served.
 */
export async function linger(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= TURN_MS) await rest(TURN_MS);
}
