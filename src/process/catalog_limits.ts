// The bounds of catalogs, like those in limits.ts.

/** Bounds of catalogs and their versions. */
export const CATALOG_LIMITS = {
  /** Documents that are kept of one app. */
  versionsKeptMax: 100,
  /** Changes that are kept with a version: a list of all versions stays small. */
  changesKeptMax: 100,
  /** Users that a dry run counts, and users that it looks at to count them. Protects the time of a preview. */
  usersCountedMax: 10_000,
  usersLookedAtMax: 100_000,
} as const;
