// Features: values by key that a plan grants, beside its limits. A key has one type in the whole catalog.

export type FeatureValue = boolean | number | string | readonly string[];

/** The JSON type of a value. */
export type FeatureType = "boolean" | "number" | "string" | "array";

/** Values by key as an administrator or a caller writes them. */
export type FeatureValues = Readonly<Record<string, FeatureValue>>;

export const FEATURE_LIMITS = {
  /** Characters of a string, and of each string of an array. */
  textLengthMax: 1_000,
  /** Strings of an array. */
  listMax: 100,
  /** Keys of one object of values. */
  keysMax: 200,
} as const;

/** What a catalog says of features. */
export interface FeatureCatalog {
  /** The type of every key that a plan or the defaults name; empty for a catalog without features. */
  readonly types: ReadonlyMap<string, FeatureType>;
  readonly defaults: FeatureValues;
}

/** Compiles the values of well-formed plans and defaults. */
export function compileFeatures(defaults: FeatureValues, plans: readonly FeatureValues[]): FeatureCatalog {
  const types = new Map<string, FeatureType>();
  for (const values of [defaults, ...plans]) {
    for (const [key, value] of Object.entries(values)) types.set(key, featureType(value));
  }
  return { types, defaults };
}

export function featureType(value: FeatureValue): FeatureType {
  return typeof value === "object" ? "array" : typeof value as Exclude<FeatureType, "array">;
}

/** Whether a value of any shape can be the value of a feature. */
export function isFeatureValue(value: unknown): value is FeatureValue {
  if (Array.isArray(value)) return value.length <= FEATURE_LIMITS.listMax && value.every(isText);
  return typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)) || isText(value);
}

function isText(value: unknown): value is string {
  const max = FEATURE_LIMITS.textLengthMax;
  return typeof value === "string" && (value.length <= max || [...value].length <= max);
}
