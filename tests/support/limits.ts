// Limits of the product that are others while the tests of a file run.

/** Changes limits for the tests of a file, to be called at its top; the files after it have the limits as they were. */
export function limitsOfFile<Limits extends object>(
  limits: Limits,
  values: Partial<Record<keyof Limits, number>>,
): void {
  let before = limits;
  Deno.test.beforeAll(() => {
    before = { ...limits };
    Object.assign(limits, values);
  });
  Deno.test.afterAll(() => {
    Object.assign(limits, before);
  });
}
