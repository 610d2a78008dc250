// The moment in which a stopping process still answers: a stretch of time in which its event loop runs.

const TURN_MS = 50;

/**
 * Waits in short turns. Where something held the event loop up (the embedded database works in this very thread), the
 * time may be over before a single connection was looked at; so it is the turns that count, each of which looks.
 */
export async function linger(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= TURN_MS) await new Promise((resolve) => setTimeout(resolve, TURN_MS));
}
