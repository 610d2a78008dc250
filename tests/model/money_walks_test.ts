// Workloads over the catalogs of money, tried on the model itself: a system that errs in one of their rules is found out. Each
// system is the model with one mistake. That they meet every case is in money_cases_long_test.ts.

import assert from "node:assert/strict";
import type { CatalogDocument, Include, LimitGroup, ModelRequest, RateRow } from "./document.ts";
import { drive } from "./drive.ts";
import { moneyCatalogs } from "./money_catalogs.ts";
import { shadow } from "./shadow.ts";

type Name = keyof typeof moneyCatalogs;

interface Mistake {
  name: Name;
  catalog?: (document: CatalogDocument) => void;
  request?: (request: ModelRequest) => ModelRequest;
  found: RegExp;
}

function rates(change: (row: RateRow) => void): (document: CatalogDocument) => void {
  return ({ rates = [] }) => rates.forEach(change);
}

function groups(change: (group: LimitGroup) => void): (document: CatalogDocument) => void {
  return ({ plans }) => plans.flatMap(({ limits }) => limits).forEach(change);
}

function includes(change: (include: Include) => void): (document: CatalogDocument) => void {
  return ({ plans }) => plans.flatMap(({ includes = [] }) => includes).forEach(change);
}

const CREDITS = /(credits.total|rate.minimum): expected/;
const SOLD = /overage|allowed|status|reasons/;
const INCLUDED = /credits|creditAvailable|allowed|status/;

const MISTAKES: Record<string, Mistake> = {
  "forgets the minimum of a rate": {
    name: "rated",
    catalog: rates((row) => delete row.minimum),
    found: CREDITS,
  },
  "rates cached tokens as any input": {
    name: "rated",
    catalog: rates((row) => delete row.perMillionCachedInputTokens),
    found: CREDITS,
  },
  "takes the last rate that matches": {
    name: "rated",
    catalog: (document) => document.rates?.reverse(),
    found: CREDITS,
  },
  "rates no output": {
    name: "rated",
    catalog: rates((row) => row.perMillionOutputTokens && (row.perMillionOutputTokens = 0)),
    found: CREDITS,
  },
  "ignores corrections in credits": {
    name: "rated",
    request: ({ op, input }) => ({ op, input: { ...input, actual: without(input["actual"]) } }),
    found: CREDITS,
  },
  "sells any amount": {
    name: "selling",
    catalog: groups((group) => group.overage && (group.overage.max = null)),
    found: SOLD,
  },
  "sells only where the plan is on its own": {
    name: "selling",
    catalog: groups((group) => group.period && delete group.overage),
    found: SOLD,
  },
  "ignores the caps of users": {
    name: "selling",
    request: ({ op, input }) =>
      op === "spendCap" && input["max"] !== null
        ? { op: "usage", input: { userId: input["userId"] } }
        : { op, input },
    found: SOLD,
  },
  "rolls nothing over": {
    name: "including",
    catalog: includes((each) => delete each.rollover),
    found: INCLUDED,
  },
  "keeps a rollover for a window too long": {
    name: "including",
    catalog: includes((each) => each.rollover && (each.rollover.periods += 1)),
    found: INCLUDED,
  },
  "rolls over more than the most": {
    name: "including",
    catalog: includes((each) => each.rollover && (each.rollover.max *= 2)),
    found: INCLUDED,
  },
  "includes packs in the windows of the plan alone": {
    name: "including",
    catalog: includes((each) => delete each.period),
    found: INCLUDED,
  },
};

function without(actual: unknown): unknown {
  if (typeof actual !== "object" || actual === null) return actual;
  const { credits: _, ...rest } = actual as Record<string, unknown>;
  return rest;
}

for (const [what, { name, catalog: spoil, request: change, found }] of Object.entries(MISTAKES)) {
  Deno.test(`a system that ${what} is found out`, async () => {
    const catalog = moneyCatalogs[name];
    const spoilt = structuredClone(catalog);
    spoil?.(spoilt);
    const system = shadow(spoilt);
    const send = (request: ModelRequest, nowMs: number) => system(change?.(request) ?? request, nowMs);
    await assert.rejects(drive({ catalog, seed: 1, steps: 1000, send }), found);
  });
}
