// Fit: makes a call smaller until it is allowed. The first model is taken for which the fewest tokens of output pass, with the
// most tokens that pass for it. What passes is decided by the same check as for any reserve, so the hold is exactly that
// of a plain reserve of this size.

import { runsOf } from "../accounts/run.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Result } from "../state/result.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { UNITS } from "../catalog/plan.ts";
import { type Amounts, priceRowOf } from "../pricing/amounts.ts";
import { type Amount, ONE } from "../values/amount.ts";
import { withMember } from "../values/match.ts";
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
  const candidates = candidatesOf(input, fit, context.catalog);
  for (const { model, call } of candidates) {
    const sizedTo = (tokens: Amount) => withOutput(call, tokens);
    const passes = (tokens: Amount) => isAllowed(sizedTo(tokens));
    const most = input.size.maxOutputTokens ?? fit.minOutputTokens;
    const needs = (tokens: Amount) => sizedReserve(sizedTo(tokens), context).amounts;
    const first = firstTokens(needs, fit.minOutputTokens, most).find(passes);
    if (first === undefined) continue;
    const maxOutputTokens = largest(passes, first, most);
    const result = reserve(draft, sizedTo(maxOutputTokens), context);
    return result.ok
      ? { ...result, answer: { ...result.answer, fitted: { model, maxOutputTokens } } }
      : result;
  }
  return reserve(draft, withOutput(candidates[0]?.call ?? input, fit.minOutputTokens), context);
}

interface Candidate {
  /** Null where the call names no model. */
  readonly model: string | null;
  readonly call: ReserveInput;
}

/** The models of the metadata and of the list; without both the one of the catalog that the event names, if any. */
function candidatesOf(input: ReserveInput, { models }: Fit, catalog: Catalog): Candidate[] {
  const { event, metadata } = input;
  const named = metadata?.members.model;
  const first = typeof named === "string" ? [{ model: named, call: input }] : [];
  const others = models.filter((model) => model !== named)
    .map((model) => ({ model, call: callOf(input, model) }));
  if (first.length + others.length > 0) return [...first, ...others];
  const isNamed = priceRowOf(catalog, event, null) !== null;
  return [{ model: isNamed ? event.slice(event.indexOf(".") + 1) : null, call: input }];
}

/** The same call of another model, which decides the price where that of the call does. */
function callOf(input: ReserveInput, model: string): ReserveInput {
  const call = { ...input, metadata: withMember(input.metadata, "model", model) };
  return input.model === undefined ? call : { ...call, model };
}

function withOutput(input: ReserveInput, maxOutputTokens: Amount): ReserveInput {
  return { ...input, size: { ...input.size, maxOutputTokens } };
}

/**
 * The numbers of tokens at which a call may begin to pass, the largest first: the fewest, and where a unit is needed at all.
 * Credits that pay alone pay in a unit that the call needs, and fewer tokens may need nothing of it.
 */
function firstTokens(needs: (tokens: Amount) => Amounts, least: Amount, most: Amount): Amount[] {
  const [fewest, all] = [needs(least), needs(most)];
  const starts = UNITS.filter((unit) => fewest[unit] === 0n && all[unit] > 0n)
    .map((unit) => largest((tokens) => needs(tokens)[unit] === 0n, least, most) + ONE);
  return [...starts, least].sort((a, b) => a < b ? 1 : a > b ? -1 : 0);
}

/**
 * The largest whole number of tokens that passes: from the least on, where some pass, all below them do.
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
