// How much the searches of the suites do: what a test says, on each merge, and several times as much where HOLDFAST_LONG is
// "deep".

/** Whether searches go far. */
export const isDeep = Deno.env.get("HOLDFAST_LONG") === "deep";

/** How many times as much a deep search does. */
const FURTHER = 8;

/** Steps, cases or lives of a search; `many` where a deep search goes further than as many times as the others. */
export function far(few: number, many: number = few * FURTHER): number {
  return isDeep ? many : few;
}

/** Seeds from one on. */
export function seedsFrom(first: number, few: number, many?: number): number[] {
  return Array.from({ length: far(few, many) }, (_, at) => first + at);
}

/** How often something is done to real processes: as HOLDFAST_CRASH_ROUNDS says, else as a search goes far. */
export function roundsOf(few: number): number {
  return Number(Deno.env.get("HOLDFAST_CRASH_ROUNDS")) || far(few);
}
