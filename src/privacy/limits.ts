// Bounds of people, captures and exports, with their units in their names.

export const PEOPLE_LIMITS = {
  /** How far ahead of the realm's clock an event may be. */
  timestampAheadMs: 24 * 3_600_000,
  /** Properties of one person, as JSON. */
  personBytesMax: 64 * 1024,
  /** Rows that an export reads at a time. */
  exportPageRows: 1_000,
  /** Rows that it holds while it puts those of people who were merged into one in order. */
  exportHeldRows: 4_000,
  /** How long a download link is valid, in real time. */
  exportValidMs: 24 * 3_600_000,
} as const;
