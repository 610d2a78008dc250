// Waits for a condition of work in flight.

/** Waits until a condition holds. @throws with its text if it does not hold within ten seconds or more */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let waits = 0; !await holds(); waits++) {
    if (waits > 2_000) throw new Error(`Never: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
