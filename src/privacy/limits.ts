// Bounds of people, captures and exports, with their units in their names.

export const PEOPLE_LIMITS = {
  /** How far ahead of the realm's clock an event may be. */
  timestampAheadMs: 24 * 3_600_000,
  /** Properties of one person, as JSON. */
  personBytesMax: 64 * 1024,
  /** Rows that an export reads at a time. */
  exportPageRows: 1_000,
  /** Rows that it reads at a time of each of many people who were merged into one. */
  exportRunRowsMin: 16,
  /** How long a download link is valid, in real time. */
  exportValidMs: 24 * 3_600_000,
} as const;
