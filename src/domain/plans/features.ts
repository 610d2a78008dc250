// Features in force. A user has the value of its own subscription; else that of the nearest user above with the key; else
// the default of the catalog. Only active rows give features.

import type { Catalog } from "../catalog/catalog.ts";
import { featureType, type FeatureValue, type FeatureValues } from "../catalog/feature.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { activePlanOf } from "./entitlement.ts";

type FeatureSource = "custom" | "plan" | "addon" | "default";

/** A value in force. */
export interface Feature {
  readonly value: FeatureValue;
  readonly from: FeatureSource;
  /** The canonical id of the user whose subscription gives it; null for a default. */
  readonly of: string | null;
}

/** Features in force by key, as on the wire. */
export type Features = Readonly<Record<string, Feature>>;

/** The input of a read of features. */
export interface FeaturesInput {
  /** Lists this feature alone; null for all. */
  readonly key: string | null;
}

export interface FeaturesAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly features: Features;
}

/** Reads the features of a user. The users above must be there. */
export function features(draft: Draft, { key }: FeaturesInput, context: Context): Result<FeaturesAnswer> {
  const { features: { types } } = context.catalog;
  if (key !== null && !types.has(key)) return refused(refusal("not_found", `Feature not found: ${key}`));
  return answered({
    userId: draft.user.id,
    features: inForce(draft, context, key === null ? types.keys() : [key]),
  });
}

/** Returns all features in force; null for a catalog without features. */
export function featuresOf(draft: Draft, context: Context): Features | null {
  const { features: { types } } = context.catalog;
  return types.size === 0 ? null : inForce(draft, context, types.keys());
}

function inForce(draft: Draft, context: Context, keys: Iterable<string>): Features {
  const { types } = context.catalog.features;
  const sources = pathOf(draft).flatMap((level) => sourcesOf(level, context));
  sources.push({ values: context.catalog.features.defaults, from: "default", of: null });
  const found: [string, Feature][] = [];
  for (const key of keys) {
    for (const { values, from, of } of sources) {
      if (!Object.hasOwn(values, key)) continue;
      const value = values[key] as FeatureValue;
      // A custom value may be older than the type that the catalog has by now.
      if (featureType(value) !== types.get(key)) continue;
      found.push([key, { value, from, of }]);
      break;
    }
  }
  return Object.fromEntries(found);
}

/** The user and those above it that are there; a settlement may bring others too. */
function pathOf(draft: Draft): Draft[] {
  const path = [draft];
  for (let key = draft.user.parentKey; key !== null;) {
    const above = draft.levelOf(key);
    if (above === null || path.includes(above)) break;
    path.push(above);
    key = above.user.parentKey;
  }
  return path;
}

interface Source {
  readonly values: FeatureValues;
  readonly from: FeatureSource;
  readonly of: string | null;
}

/** What gives features to one user of a path, the strongest first. */
function sourcesOf(level: Draft, context: Context): Source[] {
  const active = activePlanOf(level, context);
  const of = level.user.id;
  const own: Source[] = active === null ? [] : [
    { values: active.row.customFeatures, from: "custom", of },
    { values: active.plan.features, from: "plan", of },
  ];
  const added = (active?.addOns ?? []).map(({ plan }): Source => ({
    values: plan.features,
    from: "addon",
    of,
  }));
  return [...own, ...added];
}

/** Checks custom values against the catalog; null for no fault. */
export function customFault(values: FeatureValues, { features: { types } }: Catalog): Refusal | null {
  for (const [key, value] of Object.entries(values)) {
    const type = types.get(key);
    if (type === undefined) return invalidField(`customFeatures.${key}`, "not a feature of the catalog");
    if (featureType(value) !== type) {
      return invalidField(`customFeatures.${key}`, `must be ${ARTICLES[type]} ${type}`);
    }
  }
  return null;
}

const ARTICLES = { boolean: "a", number: "a", string: "a", array: "an" } as const;
