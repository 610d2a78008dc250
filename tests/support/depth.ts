// How far the searches of the long suite go: some of the way on each merge, and all of it where HOLDFAST_LONG is "deep".

/** Whether searches go as far as they can in a test. */
export const isDeep = Deno.env.get("HOLDFAST_LONG") === "deep";

/** Seeds from one on: a few, or as many as a deep search takes. */
export function seedsFrom(first: number, few: number, many: number): number[] {
  return Array.from({ length: isDeep ? many : few }, (_, at) => first + at);
}

/** How often something is done to real processes: as HOLDFAST_CRASH_ROUNDS says, else a few times, or many in a deep search. */
export function roundsOf(few: number, many: number): number {
  return Number(Deno.env.get("HOLDFAST_CRASH_ROUNDS")) || (isDeep ? many : few);
}
