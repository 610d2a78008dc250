// A pause.

/** Resolves after a time in milliseconds. */
export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
