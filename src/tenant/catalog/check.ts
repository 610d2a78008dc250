// Checks a catalog document as a whole and names each fault with its exact path. A document with a fault is refused as a
// whole, and an unknown member is a fault.

import { schemaFault } from "../../process/json_schema.ts";
import { type CatalogDocument, foldName } from "../../domain/catalog/catalog.ts";
import { type FeatureType, featureType, isFeatureValue } from "../../domain/catalog/feature.ts";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { isFeatureKey } from "./forms.ts";
import { yieldToLoop } from "../../storage/database.ts";
import { type CatalogFault, faultsOf } from "./faults.ts";
import { includeFaults } from "./include_faults.ts";
import { isObject, listOf, type Loose, looseOf, pathText } from "./loose.ts";
import { withoutNulls } from "./nulls.ts";
import { periodFaults } from "./period_faults.ts";
import { rateFaults } from "./rate_faults.ts";
import { type CatalogInput, catalogSchema, envelopeMembers } from "./schema.ts";

/**
 * The document, or every fault in it: those of each part and those between parts, so that one look at the answer is
 * enough to mend the document. Other requests are served between the compose types, whose schemas take their time.
 *
 * @param inForce the document that the new one replaces, or null
 */
export async function checkCatalog(
  document: unknown,
  inForce: CatalogDocument | null,
): Promise<{ catalog: CatalogInput } | { faults: CatalogFault[] }> {
  const bare = withoutNulls(catalogSchema, withoutEnvelope(document));
  const parsed = catalogSchema.safeParse(bare);
  const faults = (parsed.error?.issues ?? []).flatMap((issue) => faultsOf(issue, bare));
  const known = new Set(faults.map(({ path }) => path));
  const crossing = [
    ...crossFaults(bare),
    ...unitFaults(bare, inForce),
    ...periodFaults(bare, inForce),
    ...includeFaults(bare),
    ...rateFaults(bare),
  ];
  for (const fault of crossing) {
    if (!known.has(fault.path)) faults.push(fault);
  }
  // What is compiled here serves when the document is put in force, so it has to be the very objects of the result.
  const types = listOf(looseOf(parsed.data ?? bare), "composeTypes");
  for (const [index, { outputSchema }] of types.entries()) {
    const path = `composeTypes[${index}].outputSchema`;
    if (known.has(path) || !isObject(outputSchema)) continue;
    await yieldToLoop();
    const message = schemaFault(outputSchema);
    if (message !== null) faults.push({ path, message });
  }
  return parsed.success && faults.length === 0 ? { catalog: parsed.data } : { faults };
}

/** A document without what a request or file says beside it. */
function withoutEnvelope(document: unknown): unknown {
  if (!isObject(document)) return document;
  return Object.fromEntries(
    Object.entries(document).filter(([name]) => !Object.hasOwn(envelopeMembers, name)),
  );
}

/** Counters and balances are kept under these ids in their unit, so another unit would turn tokens into cents. */
function* unitFaults(document: unknown, inForce: CatalogDocument | null): Iterable<CatalogFault> {
  const before = unitsOf(inForce);
  for (const [key, { path, unit, what }] of unitsOf(document)) {
    const known = before.get(key);
    if (known === undefined || typeof unit !== "string" || known.unit === unit) continue;
    yield {
      path: pathText(path),
      message: `is ${JSON.stringify(known.unit)} in the catalog in force and cannot change under this id: ` +
        `give the ${what} a new id`,
    };
  }
}

interface UnitPlace {
  readonly path: readonly PropertyKey[];
  readonly unit: unknown;
  /** The name of the part with this unit, for error messages. */
  readonly what: string;
}

/** Every unit of a document under what it is kept by: groups by plan and id, items and packs by id. */
function unitsOf(document: unknown): Map<string, UnitPlace> {
  const units = new Map<string, UnitPlace>();
  const add = (key: unknown[], path: readonly PropertyKey[], unit: unknown, what: string) => {
    if (unit !== undefined) units.set(JSON.stringify(key), { path: [...path, "unit"], unit, what });
  };
  const catalog = looseOf(document);
  for (const [index, plan] of listOf(catalog, "plans").entries()) {
    for (const [limit, { id, unit }] of listOf(plan, "limits").entries()) {
      add(["limit", plan.id, id], ["plans", index, "limits", limit], unit, "limit group");
    }
  }
  for (const [index, pack] of listOf(catalog, "packs").entries()) {
    add(["pack", pack.id], ["packs", index], pack.unit, "pack");
    for (const [item, { id, unit }] of listOf(pack, "items").entries()) {
      add(["item", id], ["packs", index, "items", item], unit, "pack item");
    }
  }
  return units;
}

function* crossFaults(document: unknown): Iterable<CatalogFault> {
  const catalog = looseOf(document);
  const [models, plans] = [listOf(catalog, "models"), listOf(catalog, "plans")];
  const [packs, composeTypes] = [listOf(catalog, "packs"), listOf(catalog, "composeTypes")];
  yield* repeated(models.map(({ id }) => id), (index) => `models[${index}].id`);
  yield* repeated(plans.map(({ id }) => id), (index) => `plans[${index}].id`);
  yield* repeated(plans.map(foldedName), (index) => `plans[${index}].name`);
  yield* repeated(packs.map(({ id }) => id), (index) => `packs[${index}].id`);
  yield* repeated(packs.map(foldedName), (index) => `packs[${index}].name`);
  yield* repeated(composeTypes.map(({ name }) => name), (index) => `composeTypes[${index}].name`);
  for (const [index, plan] of plans.entries()) {
    const ids = listOf(plan, "limits").map(({ id }) => id);
    yield* repeated(ids, (limit) => `plans[${index}].limits[${limit}].id`);
  }
  yield* overageFaults(plans);
  yield* trialFaults(plans);
  yield* planPriceFaults(catalog, plans);
  yield* featureFaults(catalog, plans);
  yield* modelFaults(models);
  yield* packFaults(packs);
  yield* priceFaults(plans, packs);
  yield* composeFaults(composeTypes, models);
}

/** A price of a plan that is not there is nearly always a typing error, and a margin would be missing. */
function* planPriceFaults(catalog: Loose, plans: readonly Loose[]): Iterable<CatalogFault> {
  for (const id of Object.keys(looseOf(catalog.planPrices))) {
    if (plans.some((plan) => plan.id === id)) continue;
    yield { path: pathText(["planPrices", id]), message: "must be named by the id of a plan of the catalog" };
  }
}

/** Overage is sold past the quota; headroom stops before it. */
function* overageFaults(plans: readonly Loose[]): Iterable<CatalogFault> {
  for (const [index, plan] of plans.entries()) {
    for (const [limit, { overage, headroom, period }] of listOf(plan, "limits").entries()) {
      const { type } = looseOf(period);
      if (overage === undefined || type === "rolling" || type === "concurrent") continue;
      const [own, ofPlan] = [headroom ?? null, plan.headroom ?? null];
      if (own === null && ofPlan === null) continue;
      const message = `must be left out together with headroom${own === null ? " of the plan" : ""}`;
      yield { path: `plans[${index}].limits[${limit}].overage`, message };
    }
  }
}

/** After a trial comes another plan of the catalog. */
function* trialFaults(plans: readonly Loose[]): Iterable<CatalogFault> {
  for (const [index, { id, trial, addon }] of plans.entries()) {
    const { thenPlanId } = looseOf(trial);
    if (typeof thenPlanId !== "string") continue;
    const after = plans.find((plan) => plan.id === thenPlanId);
    const path = `plans[${index}].trial.thenPlanId`;
    if (after === undefined || thenPlanId === id) {
      yield { path, message: "must be the id of another plan of the catalog" };
    } else if ((after.addon === true) !== (addon === true)) {
      yield { path, message: addon === true ? "must be an add-on, as the plan is" : "must not be an add-on" };
    }
  }
}

function foldedName({ name }: Loose): unknown {
  return typeof name === "string" ? foldName(name) : undefined;
}

/** Texts that occur earlier in the list; an element that is not a text is another fault. */
function* repeated(texts: readonly unknown[], path: (index: number) => string): Iterable<CatalogFault> {
  const seen = new Set<string>();
  for (const [index, text] of texts.entries()) {
    if (typeof text !== "string") continue;
    if (seen.has(text)) yield { path: path(index), message: "must be unique" };
    seen.add(text);
  }
}

/** A key has one type in the whole catalog; the first place that names it decides. */
function* featureFaults({ featureDefaults }: Loose, plans: readonly Loose[]): Iterable<CatalogFault> {
  const first = new Map<string, { readonly path: string; readonly type: FeatureType }>();
  const places = plans.map(({ features }, index) => [`plans[${index}].features`, features] as const);
  for (const [place, values] of [["featureDefaults", featureDefaults] as const, ...places]) {
    for (const [key, value] of Object.entries(looseOf(values))) {
      const path = `${place}.${key}`;
      if (!isFeatureKey(key)) {
        yield {
          path,
          message:
            `must have a key of 1 to ${REQUEST_LIMITS.eventLengthMax} characters without "*", U+FFFD or control ` +
            "characters",
        };
      }
      if (!isFeatureValue(value)) continue;
      const type = featureType(value);
      const known = first.get(key);
      if (known === undefined) first.set(key, { path, type });
      else if (known.type !== type) {
        yield { path, message: `must be of the same type as ${known.path}: ${known.type}` };
      }
    }
  }
}

const PRICE_MEMBERS = new Map<unknown, string>([
  ["per_token", "inputCentsPerMillionTokens"],
  ["per_call", "centsPerCall"],
  ["per_unit", "centsPerSecond"],
]);

function* modelFaults(models: readonly Loose[]): Iterable<CatalogFault> {
  yield* aliasFaults(models);
  for (const [index, model] of models.entries()) {
    yield* repeatedTiers(listOf(model, "tiers"), index);
    if (model.centsPerCall !== undefined && model.centsPerImage !== undefined) {
      yield {
        path: `models[${index}].centsPerImage`,
        message: "excludes centsPerCall: remove one of them",
      };
    }
    const member = PRICE_MEMBERS.get(model.amountMode);
    if (member === undefined || model[member] !== undefined) continue;
    if (member === "centsPerCall" && model.centsPerImage !== undefined) continue;
    yield {
      path: `models[${index}].${member}`,
      message: `is needed when amountMode is ${String(model.amountMode)}`,
    };
  }
}

/** A name has one price: a second place would leave open which. */
function* aliasFaults(models: readonly Loose[]): Iterable<CatalogFault> {
  const places = new Map(models.map(({ id }, index) => [id, `models[${index}].id`]));
  for (const [index, { aliases }] of models.entries()) {
    for (const [alias, name] of (Array.isArray(aliases) ? aliases : []).entries()) {
      if (typeof name !== "string") continue;
      const path = `models[${index}].aliases[${alias}]`;
      const first = places.get(name);
      if (first === undefined) places.set(name, path);
      else yield { path, message: `repeats the name ${JSON.stringify(name)} of ${first}` };
    }
  }
}

function* repeatedTiers(tiers: readonly Loose[], model: number): Iterable<CatalogFault> {
  const bounds = tiers.map(({ aboveInputTokens }) => aboveInputTokens);
  for (const [tier, bound] of bounds.entries()) {
    if (typeof bound !== "number" || bounds.indexOf(bound) === tier) continue;
    yield {
      path: `models[${model}].tiers[${tier}].aboveInputTokens`,
      message: "must be unique in its model",
    };
  }
}

function* packFaults(packs: readonly Loose[]): Iterable<CatalogFault> {
  const itemIds = new Set<string>();
  for (const [index, pack] of packs.entries()) {
    const items = listOf(pack, "items");
    for (const [item, { lowAt, amount }] of items.entries()) {
      if (typeof lowAt !== "number" || typeof amount !== "number" || lowAt < amount) continue;
      yield { path: `packs[${index}].items[${item}].lowAt`, message: "must be less than the amount" };
    }
    if (items.length > 0 && pack.lowAt !== undefined) {
      yield { path: `packs[${index}].lowAt`, message: "must be on each item when the pack has items" };
    }
    for (const [item, { id }] of items.entries()) {
      if (typeof id !== "string") continue;
      if (itemIds.has(id)) yield { path: `packs[${index}].items[${item}].id`, message: "must be unique" };
      itemIds.add(id);
    }
    if (!Array.isArray(pack.items) || items.length > 0) continue;
    for (const member of ["unit", "matches"] as const) {
      if (pack[member] === undefined) {
        yield { path: `packs[${index}].${member}`, message: "is needed when the pack has no items" };
      }
    }
  }
}

/** A price of Stripe sells one thing: a second place would leave open which. */
function* priceFaults(plans: readonly Loose[], packs: readonly Loose[]): Iterable<CatalogFault> {
  const places = new Map<string, string>();
  for (const [list, parts] of [["plans", plans], ["packs", packs]] as const) {
    for (const [index, { stripePrices }] of parts.entries()) {
      for (const [price, id] of (Array.isArray(stripePrices) ? stripePrices : []).entries()) {
        if (typeof id !== "string") continue;
        const path = `${list}[${index}].stripePrices[${price}]`;
        const first = places.get(id);
        if (first === undefined) places.set(id, path);
        else {yield {
            path,
            message: `repeats the price ${JSON.stringify(id)} of ${first}`,
          };}
      }
    }
  }
}

function* composeFaults(types: readonly Loose[], models: readonly Loose[]): Iterable<CatalogFault> {
  for (const [index, type] of types.entries()) {
    const model = models.find(({ id }) => id === type.model);
    if (typeof type.model === "string" && model?.amountMode !== "per_token") {
      yield { path: `composeTypes[${index}].model`, message: "must be the id of a per_token model" };
    }
    const places = typeof type.prompt === "string" ? placesOf(type.prompt) : [];
    if (places === null) {
      yield {
        path: `composeTypes[${index}].prompt`,
        message: "has a brace that opens or closes no place; write {{ or }} for a brace",
      };
    }
    const sources: readonly unknown[] = Array.isArray(type.dataSources) ? type.dataSources : [];
    for (const place of new Set(places ?? [])) {
      if (!DATA_SOURCES.has(place) || sources.includes(place)) continue;
      yield {
        path: `composeTypes[${index}].prompt`,
        message: `names the data source "${place}", which is not in dataSources`,
      };
    }
  }
}

const DATA_SOURCES = new Set(["user_usage", "user_events", "user_attributes", "subscription", "credits"]);

/** The names of the places of a template, or null where its braces do not pair. */
function placesOf(template: string): string[] | null {
  const names: string[] = [];
  const rest = template.replaceAll(/\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name) => {
    if (name !== undefined) names.push(name);
    return "";
  });
  return /[{}]/.test(rest) ? null : names;
}
