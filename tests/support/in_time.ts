// Waits with an end: a test of work that may hang fails instead of hanging too.

/** How long work may take that should take milliseconds. */
const LONGEST_MS = 10_000;

/** Settles as work does; rejects where it takes too long. */
export async function inTime<Value>(work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`It did not end within ${LONGEST_MS} ms`)), LONGEST_MS);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
