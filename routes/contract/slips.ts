// Members that callers often write in place of others: an amount in snake_case, by another API's name, or on a call that does
// not have it. The calls refuse them, because an amount that is ignored is work that nobody pays for.

/** The calls with a column of their own. `hold`: reserve, can-use and explain. `batch`: the request around its events. */
type Column = "hold" | "commit" | "release" | "track" | "batch";

/** What to write in place of some names, by call. */
interface Slip {
  /** Without case and underscores: `inputtokens` is also `input_tokens`. */
  readonly names: readonly string[];
  readonly hold: string;
  readonly commit: string;
  readonly track: string;
}

const TABLE: readonly Slip[] = [
  {
    names: ["userid", "enduserid", "customerid"],
    hold: "userId",
    commit: "userId of reserve",
    track: "userId",
  },
  {
    names: ["model", "modelid", "modelname"],
    hold: "metadata.model",
    commit: "metadata.model of reserve",
    track: "metadata.model",
  },
  {
    names: ["ttl", "ttlseconds", "ttlms", "expiresin"],
    hold: "ttlSeconds of reserve",
    commit: "ttlSeconds of reserve",
    track: "ttlSeconds of reserve",
  },
  {
    names: ["count", "amount", "units", "n", "images"],
    hold: "count",
    commit: "actual.count",
    track: "count",
  },
  {
    names: ["quantity", "options.quantity", "qty"],
    hold: "quantity, beside options",
    commit: "actual.count, or actual.seconds",
    track: "quantity, beside options",
  },
  {
    names: ["seconds", "duration", "durationseconds"],
    hold: "quantity",
    commit: "actual.seconds, or usage.seconds",
    track: "quantity, or usage.seconds",
  },
  {
    names: ["tokens", "totaltokens"],
    hold: "inputTokens, and maxOutputTokens for the maximum output",
    commit: "usage, or actual.tokens",
    track: "inputTokens, or usage",
  },
  {
    names: ["inputtokens", "prompttokens"],
    hold: "inputTokens",
    commit: "usage.inputTokens",
    track: "inputTokens, or usage.inputTokens",
  },
  {
    names: ["outputtokens", "completiontokens"],
    hold: "maxOutputTokens for the maximum output",
    commit: "usage.outputTokens, or extra.outputTokens",
    track: "usage.outputTokens",
  },
  {
    names: ["maxoutputtokens", "maxtokens", "maxcompletiontokens"],
    hold: "maxOutputTokens",
    commit: "usage.outputTokens; maxOutputTokens belongs to reserve",
    track: "usage.outputTokens; maxOutputTokens belongs to reserve",
  },
  ...["cacheWriteTokens", "cacheWrite1hTokens"].map((name) => ({
    names: [name.toLowerCase()],
    hold: name,
    commit: `usage.${name}`,
    track: `usage.${name}`,
  })),
  ...["cachedInputTokens", "reasoningTokens", "calls"].map((name) => ({
    names: [name.toLowerCase()],
    hold: `usage.${name} of commit`,
    commit: `usage.${name}`,
    track: `usage.${name}`,
  })),
  {
    names: ["cost", "costcents", "cents", "price"],
    hold: "inputCostCents",
    commit: "costCents",
    track: "costCents",
  },
  {
    names: ["inputcostcents", "inputcost"],
    hold: "inputCostCents",
    commit: "actual.cents; inputCostCents belongs to reserve",
    track: "inputCostCents",
  },
  {
    names: ["outputcostcents", "outputcost"],
    hold: "inputCostCents; outputCostCents belongs to extra of commit",
    commit: "extra.outputCostCents",
    track: "costCents; outputCostCents belongs to extra of commit",
  },
  {
    names: ["usage", "providerusage"],
    hold: "usage of commit; before the work, inputTokens and maxOutputTokens",
    commit: "usage, or providerUsage",
    track: "usage, or providerUsage",
  },
  { names: ["extra"], hold: "extra of commit", commit: "extra", track: "usage; extra belongs to commit" },
  { names: ["actual"], hold: "actual of commit", commit: "actual", track: "usage; actual belongs to commit" },
];

/** Members of other calls that are no amounts: written exactly so they are reported as unknown, not refused. */
const HARMLESS: ReadonlySet<string> = new Set(["userId", "ttlSeconds"]);

/**
 * Returns what to write in place of a member that a call does not have; null if the member is not a common mistake.
 *
 * @param name as the caller wrote it, with `options.` before it for a member of the body in `options`
 */
export type Slips = (name: string) => string | null;

/** The common mistakes of a call; `own` replaces columns of the table. */
function slipsOf(column: Column, own: Readonly<Record<string, string>> = {}): Slips {
  const rights = new Map(TABLE.flatMap((slip) => slip.names.map((name) => [name, rightOf(slip, column)])));
  for (const [name, right] of Object.entries(own)) rights.set(name, right);
  return (name) => HARMLESS.has(name) ? null : rights.get(name.replace(/[_-]/g, "").toLowerCase()) ?? null;
}

function rightOf(slip: Slip, column: Column): string {
  if (column === "batch") return `${slip.track}, in each event`;
  if (column !== "release") return slip[column];
  return slip.commit.includes("reserve") ? slip.commit : `${slip.commit} of commit; a release counts nothing`;
}

const TTL = { ttl: "ttlSeconds", ttlseconds: "ttlSeconds", ttlms: "ttlSeconds", expiresin: "ttlSeconds" };

export const RESERVE_SLIPS: Slips = slipsOf("hold", TTL);
export const CAN_USE_SLIPS: Slips = slipsOf("hold");
export const COMMIT_SLIPS: Slips = slipsOf("commit");
export const RELEASE_SLIPS: Slips = slipsOf("release");
export const TRACK_SLIPS: Slips = slipsOf("track");
export const BATCH_SLIPS: Slips = slipsOf("batch");
/** No common mistakes: every unknown member is a warning. */
export const NO_SLIPS: Slips = () => null;
