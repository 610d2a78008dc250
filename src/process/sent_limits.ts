// Bounds of what callers send, before it is known to be good: bodies, wrong tokens, calls with a public key.

/** Bounds of request bodies, which hold before a body is parsed. */
export const BODY_LIMITS = {
  /** How often arriving bodies are checked. */
  tickMs: 1_000,
  /** A body has to arrive within this time ... */
  arriveMs: 60_000,
  /** ... and at this rate on average, once it is this old: half a body that stays must not keep its memory. */
  bytesPerSecondMin: 16 * 1024,
  slowAfterMs: 5_000,
  /** Younger bodies have no rate yet, so a full pot does not end them. */
  youngMs: 1_000,
  /** Bodies up to this size are small: with a key only the number of connections bounds them. */
  smallBytesMax: 16 * 1024,
  /** Bytes of all larger bodies of callers with a key or token, a pot of its own ... */
  largeBytesMax: 128 * 1024 * 1024,
  /** ... and of those of one app, so that it leaves room for others. One body alone may be larger. */
  appBytesMax: 16 * 1024 * 1024,
  /** Bytes of all bodies of callers without a key: another pot, so that strangers cannot fill the one of tenants. */
  keylessBytesMax: 4 * 1024 * 1024,
  /** A body with a public key, which any visitor of a page has. */
  publicBytesMax: 64 * 1024,
  /** The forms of sign-in and sign-out. */
  signInBytesMax: 4 * 1024,
  /** Forms of the console: enough for a catalog of the size that the API accepts, in the encoding of forms. */
  formBytesMax: 4 * 1024 * 1024,
  /** Fields of a form: a million of them would keep the thread that answers for half a second. */
  formFieldsMax: 200,
  /** Brackets, braces and commas outside of strings: JSON takes time and memory by its values, not by its bytes. */
  structureMax: 50_000,
  /** Bodies of the gateway with more bytes, or more structure, are read in a thread: one may take a second. */
  readHereBytesMax: 1024 * 1024,
  readHereStructureMax: 10_000,
  /** The thread ends when it had no work for this long. */
  threadIdleMs: 60_000,
} as const;

/** Bounds of wrong tokens of console and admin API, so that no token can be guessed. */
export const GUESS_LIMITS = {
  withinMs: 60_000,
  /** Wrong tokens from one address, which is that of the socket, before further ones are not looked up. */
  perAddressMax: 10,
  /** From all addresses. */
  inAllMax: 100,
} as const;

/**
 * The rate limit of a public key where the catalog sets none: enough for the pages of a large site, which share one key, and
 * too little for one visitor to keep the process busy.
 */
export const PUBLIC_RATE_LIMIT = { perSecond: 500, burst: 1_000 } as const;

/** Bounds of the log of failed requests. */
export const REQUEST_LOG_LIMITS = {
  /** How long a request waits to be written with others. */
  writeEveryMs: 3_000,
  /** Rows in memory, each of at most about 3 KB; requests that need another row are not counted ... */
  rowsMax: 4_000,
  /** ... and those of one app, or of all unknown keys. */
  appRowsMax: 500,
  /** Stored rows of an app, or of all unknown keys; the oldest go. */
  storedMax: 10_000,
  /** How long rows are kept after their last request, in real time. */
  keptMs: 7 * 24 * 3_600_000,
  /** Unknown keys in one answer. */
  unknownShownMax: 100,
} as const;
