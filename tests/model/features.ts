// Features: the custom values of the primary subscription, then those of its plan, then the same of each user above, then
// the default of the catalog.

import {
  type FeatureValue,
  type FeatureValues,
  type Input,
  type ModelReply,
  refusal,
  success,
  type WireData,
} from "./document.ts";
import type { User, World } from "./state.ts";
import { usersAbove } from "./tree.ts";

/** The type of every key of the catalog. */
function typesOf({ catalog }: World): Map<string, string> {
  const all = [catalog.featureDefaults ?? {}, ...catalog.plans.map(({ features = {} }) => features)];
  return new Map(all.flatMap((values) => Object.entries(values).map(([key, value]) => [key, typeOf(value)])));
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

export function hasFeatures(world: World): boolean {
  return typesOf(world).size > 0;
}

/** The features that a user has. */
export function featuresOf(world: World, user: User, now: number): WireData {
  const found: WireData = {};
  for (const [key, type] of typesOf(world)) {
    const feature = featureOf(world, user, key, type, now);
    if (feature) found[key] = feature;
  }
  return found;
}

function featureOf(world: World, user: User, key: string, type: string, now: number): WireData | null {
  for (const each of [user, ...usersAbove(world, user)]) {
    const primary = world.primary(each, now);
    if (!primary) continue;
    const custom = primary.customFeatures.get(key);
    const above = each === user ? "" : " of a user above";
    if (typeOf(custom) === type) {
      world.note(`features: a custom value${above}`);
      return { value: custom, from: "custom", of: each.id };
    }
    const value = world.plan(primary.planId).features?.[key];
    if (value === undefined) continue;
    world.note(`features: a plan's value${above}`);
    return { value, from: "plan", of: each.id };
  }
  const value = world.catalog.featureDefaults?.[key];
  return value === undefined ? null : { value, from: "default", of: null };
}

/** What answers about a user have of features. */
export function shownFeatures(world: World, user: User, now: number): { features?: WireData } {
  return hasFeatures(world) ? { features: featuresOf(world, user, now) } : {};
}

/** The call that reads features. */
export function features(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const { key } = input;
  if (typeof key === "string" && !typesOf(world).has(key)) return refusal("not_found");
  const all = Object.entries(featuresOf(world, user, now));
  const wanted = typeof key === "string" ? all.filter(([each]) => each === key) : all;
  return success({ userId: user.id, features: Object.fromEntries(wanted) });
}

/** Undefined keeps the values. */
export function readFeatures(
  world: World,
  given: unknown,
): Map<string, FeatureValue> | undefined | "unknown feature" {
  if (given === undefined) return undefined;
  const types = typesOf(world);
  const values = Object.entries((given ?? {}) as FeatureValues);
  return values.every(([key, value]) => types.get(key) === typeOf(value))
    ? new Map(values)
    : "unknown feature";
}
