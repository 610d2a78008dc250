// Members of a commit or a track that contradict each other.

import { z } from "zod";
import { amount, signedAmount } from "./fields.ts";
import type { Usage } from "../../src/domain/pricing/usage.ts";

/** Amounts by unit, added to the reserved ones. */
export const extra = amountsOf("extra", {
  count: signedAmount.nullish(),
  tokens: signedAmount.nullish(),
  outputTokens: signedAmount.nullish(),
  cents: signedAmount.nullish(),
  outputCostCents: signedAmount.nullish(),
  seconds: signedAmount.nullish(),
  credits: signedAmount.nullish(),
});

/** Amounts by unit that replace the reserved ones. */
export const actual = amountsOf("actual", {
  count: amount.nullish(),
  tokens: amount.nullish(),
  cents: amount.nullish(),
  seconds: amount.nullish(),
  credits: amount.nullish(),
});

/** An object of amounts that refuses unknown members: an ignored one would be an amount that is not counted. */
function amountsOf<Shape extends z.ZodRawShape>(name: string, shape: Shape) {
  const unknown = `unknown parameter; ${name} has ${Object.keys(shape).join(", ")}`;
  return z.strictObject(shape, {
    error: ({ code }) => code === "unrecognized_keys" ? unknown : undefined,
  });
}

/** A fault of a member. */
export interface MemberFault {
  readonly path: readonly string[];
  readonly message: string;
}

/** Faults of a commit that names one amount twice: in extra and actual, by two names, or beside costCents. */
export function* correctionFaults(input: {
  readonly extra?: z.infer<typeof extra> | null | undefined;
  readonly actual?: z.infer<typeof actual> | null | undefined;
  readonly costCents?: number | null | undefined;
}): Iterable<MemberFault> {
  const extras = input.extra ?? {};
  const actuals = input.actual ?? {};
  const cannot = (path: readonly string[], other: string) => ({
    path,
    message: `cannot be combined with ${other}`,
  });
  if (isSet(extras.tokens) && isSet(extras.outputTokens)) {
    yield cannot(["extra", "outputTokens"], "extra.tokens: both name the same amount");
  }
  if (isSet(extras.cents) && isSet(extras.outputCostCents)) {
    yield cannot(["extra", "outputCostCents"], "extra.cents: both name the same amount");
  }
  for (const [unit, ...names] of EXTRA_NAMES) {
    const name = names.find((name) => isSet(extras[name]));
    if (name !== undefined && isSet(actuals[unit])) yield cannot(["extra", name], `actual.${unit}`);
  }
  if (!isSet(input.costCents)) return;
  for (const name of ["cents", "outputCostCents"] as const) {
    if (isSet(extras[name])) yield cannot(["costCents"], `extra.${name}`);
  }
  if (isSet(actuals.cents)) yield cannot(["costCents"], "actual.cents");
}

/** Each unit with its member names in `extra`. */
const EXTRA_NAMES = [
  ["count", "count"],
  ["tokens", "tokens", "outputTokens"],
  ["cents", "cents", "outputCostCents"],
  ["seconds", "seconds"],
  ["credits", "credits"],
] as const;

interface Reported {
  readonly usage?: Usage | null | undefined;
  readonly providerUsage?: Usage | null | undefined;
}

export function reportsUsage({ usage, providerUsage }: Reported): boolean {
  return isSet(usage) || isSet(providerUsage);
}

/** Faults of a commit with a usage that names the same amounts elsewhere too. */
export function* usageConflicts(
  input: Reported & {
    readonly extra?: z.infer<typeof extra> | null | undefined;
    readonly actual?: z.infer<typeof actual> | null | undefined;
    readonly costCents?: number | null | undefined;
  },
): Iterable<MemberFault> {
  yield* conflictsOf(input, { costCents: input.costCents }, ["costCents"]);
  const seconds = input.usage?.seconds == null ? [] : ["seconds"];
  const extras = ["tokens", "outputTokens", "cents", "outputCostCents", "credits", ...seconds];
  yield* conflictsOf(input, input.extra ?? {}, extras, "extra");
  yield* conflictsOf(input, input.actual ?? {}, ["tokens", "cents", "credits", ...seconds], "actual");
}

/** Faults for each of these members that is present together with a usage. */
export function* conflictsOf(
  reported: Reported,
  members: Readonly<Record<string, unknown>>,
  names: readonly string[],
  parent?: string,
): Iterable<MemberFault> {
  const name = isSet(reported.usage) ? "usage" : "providerUsage";
  if (parent === undefined && isSet(reported.usage) && isSet(reported.providerUsage)) {
    yield { path: ["providerUsage"], message: "cannot be combined with usage" };
  }
  for (const member of names) {
    if (!isSet(members[member])) continue;
    yield {
      path: parent === undefined ? [member] : [parent, member],
      message: `cannot be combined with ${name}`,
    };
  }
}

export function addFaults(context: z.RefinementCtx, faults: Iterable<MemberFault>): void {
  for (const { path, message } of faults) context.addIssue({ code: "custom", message, path: [...path] });
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
