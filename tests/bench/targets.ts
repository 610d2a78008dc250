// The targets of figures, and the words for them.
import type { Spread } from "./load_plan.ts";

/** The side of the target on which a figure should stay. */
export type Bound = { readonly atLeast: number } | { readonly atMost: number };

/** A figure of a run beside its bound. */
export type Target = { what: string; users: Spread; value: number; met: boolean } & Bound;

/** A target as one line. */
export function targetLine(target: Target): string {
  const { what, users, value, met } = target;
  const bound = "atLeast" in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`;
  return `target ${met ? "met" : "MISSED"}: ${what}, ${users}: ${value.toFixed(2)} (${bound})`;
}
