// Counters of what callers send before it is known to be good: bodies, and wrong tokens. They are those of the process: all
// bodies share its memory.

/** The senders that share a pot of memory: with a key or token, or without any. */
const POT_NAMES = ["keyed", "keyless"] as const;

export type PotName = (typeof POT_NAMES)[number];

/**
 * Why a body was refused before it was parsed: too `large`, with too much `structure`, a form with too many `fields`, too
 * `slow`.
 */
const BODY_FAULTS = ["large", "structure", "fields", "slow"] as const;

type BodyFault = (typeof BODY_FAULTS)[number];

/** Counts of the process. */
export const BODY_COUNTS = {
  /** Bytes that bodies take from each pot. */
  heldBytes: { keyed: 0, keyless: 0 } as Record<PotName, number>,
  /** Bodies ended or refused because their pot, or the share of their app, was full. */
  full: { keyed: 0, keyless: 0 } as Record<PotName, number>,
  refused: { large: 0, structure: 0, fields: 0, slow: 0 } as Record<BodyFault, number>,
  /** Bodies that wait for the thread that reads large ones, or are read by it. */
  inThread: 0,
};

/** Wrong tokens of console and admin API: those that were looked up, and those above the limit. */
export const WRONG_TOKEN_COUNTS = { refused: 0, limited: 0 };
