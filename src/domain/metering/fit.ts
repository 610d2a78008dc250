// Fit: makes a call smaller until it is allowed. The first model is taken for which the fewest tokens of output pass, with the
// most tokens that pass for it. What passes is decided by the same check as for any reserve, so the hold is exactly that
// of a plain reserve of this size.

import { runsOf } from "../accounts/run.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Result } from "../state/result.ts";
import { type Amount, ONE } from "../values/amount.ts";
import { type Metadata, withMember } from "../values/match.ts";
import { assessPath } from "./levels.ts";
import { type Fit, reserve, type ReserveAnswer, type ReserveInput, sizedReserve } from "./reserve.ts";

/** Decides a reserve that may be made smaller. Refused, it is the refusal of the first model at the fewest tokens. */
export function reserveFitting(
  draft: Draft,
  input: ReserveInput,
  fit: Fit,
  context: Context,
): Result<ReserveAnswer> {
  const runs = runsOf(draft, input.runId, context.now);
  if (!runs.ok) return runs;
  const isAllowed = (call: ReserveInput) =>
    assessPath(draft, context, sizedReserve(call, context), "gate", null, runs.answer).reasons.length === 0;
  const candidates = candidatesOf(input, fit);
  for (const { model, metadata } of candidates) {
    const sizedTo = (tokens: Amount) => withOutput({ ...input, metadata }, tokens);
    if (!isAllowed(sizedTo(fit.minOutputTokens))) continue;
    const most = input.size.maxOutputTokens ?? fit.minOutputTokens;
    const maxOutputTokens = largest((tokens) => isAllowed(sizedTo(tokens)), fit.minOutputTokens, most);
    const result = reserve(draft, sizedTo(maxOutputTokens), context);
    return result.ok
      ? { ...result, answer: { ...result.answer, fitted: { model, maxOutputTokens } } }
      : result;
  }
  const metadata = candidates[0]?.metadata ?? null;
  return reserve(draft, withOutput({ ...input, metadata }, fit.minOutputTokens), context);
}

interface Candidate {
  /** Null where the call names no model. */
  readonly model: string | null;
  readonly metadata: Metadata | null;
}

/** The models of the metadata and of the list; without both the one that the event names after its first dot. */
function candidatesOf({ event, metadata }: ReserveInput, { models }: Fit): Candidate[] {
  const named = metadata?.members.model;
  const first = typeof named === "string" ? [{ model: named, metadata }] : [];
  const others = models.filter((model) => model !== named)
    .map((model) => ({ model, metadata: withMember(metadata, "model", model) }));
  if (first.length + others.length > 0) return [...first, ...others];
  const dot = event.indexOf(".");
  return [{ model: dot < 0 ? null : event.slice(dot + 1), metadata }];
}

function withOutput(input: ReserveInput, maxOutputTokens: Amount): ReserveInput {
  return { ...input, size: { ...input.size, maxOutputTokens } };
}

/**
 * The largest whole number of tokens that passes: where some pass, all below them do.
 *
 * @param least a number that passes
 */
function largest(passes: (tokens: Amount) => boolean, least: Amount, most: Amount): Amount {
  if (passes(most)) return most;
  let low = least;
  let high = most;
  while (high - low > ONE) {
    const middle = low + (high - low) / (2n * ONE) * ONE;
    if (passes(middle)) low = middle;
    else high = middle;
  }
  return low;
}
