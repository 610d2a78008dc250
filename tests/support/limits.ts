// Other limits of the product for a while: for the tests of a file, or until the end of a block.

type Changes<Limits> = Partial<Record<keyof Limits, number>>;

/**
 * Changes limits until the end of the block.
 *
 * @example `using _limits = changedLimits(GATEWAY_LIMITS, { stillMs: 50 });`
 */
export function changedLimits<Limits extends object>(limits: Limits, values: Changes<Limits>): Disposable {
  const before = { ...limits };
  Object.assign(limits, values);
  return { [Symbol.dispose]: () => Object.assign(limits, before) };
}

/** Changes limits for the tests of a file, to be called at its top; the files after it have the usual ones. */
export function limitsOfFile<Limits extends object>(limits: Limits, values: Changes<Limits>): void {
  let changed: Disposable | null = null;
  Deno.test.beforeAll(() => {
    changed = changedLimits(limits, values);
  });
  Deno.test.afterAll(() => changed?.[Symbol.dispose]());
}
