// Input schemas of reserve, commit, release and track, and of can-use, which explain shares. Specification,
// "Reservations"; section 5 of the decisions.

import { z } from "zod";
import {
  amount,
  anyId,
  cutAt,
  endUserId,
  eventName,
  isAmount,
  isAnyId,
  isEndUserId,
  isEventName,
  isPositiveAmount,
  loggedText,
  metadata,
  positiveAmount,
  readMetadata,
  signedAmount,
} from "./fields.ts";
import { providerUsage, usage } from "./usage.ts";
import type { Metadata } from "../../../src/domain/values/match.ts";
import type { Usage } from "../../../src/domain/pricing/usage.ts";
import { ERROR_CODE_LENGTH_MAX, REASON_LENGTH_MAX } from "../../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../../src/process/limits.ts";

const size = {
  quantity: positiveAmount.nullish().describe("Seconds, in seconds groups; the event's quantity. Default 1"),
  count: positiveAmount.nullish().describe("In count groups. Default 1"),
  inputTokens: amount.nullish().describe("In tokens groups; also the base of cents from the model's price"),
  inputCostCents: amount.nullish().describe("In cents groups, in place of the model's price of the input"),
};

const maxOutputTokens = positiveAmount.nullish().describe(
  "The longest answer: held with inputTokens, and in cents by the model's prices",
);

const call = {
  userId: endUserId,
  event: eventName.describe("What is used, such as image.render"),
  metadata: metadata.nullish().describe("What rules look at; model names the row of prices"),
  ...size,
};

const COUNTED_COST = "A cents group counts it only where the model is priced by the second";

export const canUseInput = z.object({ ...call, maxOutputTokens });

export const reserveInput = z.object({
  ...call,
  maxOutputTokens,
  ttlSeconds: z.number().min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).nullish()
    .describe("How long the hold lasts; default: the app's reservationTtlSeconds"),
  prompt: loggedText.nullish().describe(
    "Kept while prompt logging is on and the user has not opted out of it",
  ),
});

/** `POST /v1/track/batch`. Each event is checked by itself, so that one at fault refuses that one alone. */
export const trackBatchInput = z.object({
  events: z.array(
    z.unknown().meta({
      type: "object",
      additionalProperties: true,
      description: "A body of `POST /v1/track`, with an `idempotencyKey` of 1 to 200 characters if you like.",
    }),
  ).min(1).max(REQUEST_LIMITS.batchEventsMax).describe("1 to 500 events."),
});

export const trackInput = z.object({
  ...call,
  costCents: amount.nullish().describe("The event's cost, for reports. " + COUNTED_COST),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  prompt: loggedText.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  if (!reportsUsage(input)) return;
  addFaults(context, conflictsOf(input, input, ["inputTokens", "inputCostCents", "costCents"]));
});

type Members = Readonly<Record<string, unknown>>;
/** Whether a value fits a member as it is; "read" for metadata, which is read. */
type Fits = ((value: unknown) => boolean) | "read";

/**
 * What a schema makes of members that are all plain: the same, at a tenth of the time and without an object of its own.
 * Null where only the schema can say, for anything else and for everything that does not fit.
 *
 * @param required members that must be there
 * @param fits members that are taken as they are, and metadata where the call has it
 */
function plainOf<Schema extends z.ZodType>(
  required: readonly string[],
  fits: Readonly<Record<string, Fits>>,
) {
  const known = new Map(Object.entries(fits));
  return (members: Members): z.infer<Schema> | null => {
    let read: Metadata | null = null;
    for (const name in members) {
      const fit = known.get(name);
      if (fit === "read") {
        read = readMetadata(members.metadata);
        if (read === null) return null;
      } else if (fit?.(members[name]) !== true) return null;
    }
    for (const name of required) {
      if (members[name] === undefined) return null;
    }
    return (read === null ? members : { ...members, metadata: read }) as z.infer<Schema>;
  };
}

const PLAIN_CALL = {
  userId: isEndUserId,
  event: isEventName,
  metadata: "read",
  quantity: isPositiveAmount,
  count: isPositiveAmount,
  inputTokens: isAmount,
  inputCostCents: isAmount,
} satisfies Record<string, Fits>;
const OF_CALL = ["userId", "event"];

export const plainTrack = plainOf<typeof trackInput>(OF_CALL, { ...PLAIN_CALL, costCents: isAmount });
export const plainCanUse = plainOf<typeof canUseInput>(OF_CALL, {
  ...PLAIN_CALL,
  maxOutputTokens: isPositiveAmount,
});
export const plainReserve = plainOf<typeof reserveInput>(OF_CALL, {
  ...PLAIN_CALL,
  maxOutputTokens: isPositiveAmount,
  ttlSeconds: isTtl,
});

function isTtl(value: unknown): boolean {
  return typeof value === "number" && value >= REQUEST_LIMITS.ttlSecondsMin &&
    value <= REQUEST_LIMITS.ttlSecondsMax;
}

const extra = z.object({
  count: signedAmount.nullish(),
  tokens: signedAmount.nullish(),
  outputTokens: signedAmount.nullish(),
  cents: signedAmount.nullish(),
  outputCostCents: signedAmount.nullish(),
  seconds: signedAmount.nullish(),
});

const actual = z.object({
  count: amount.nullish(),
  tokens: amount.nullish(),
  cents: amount.nullish(),
  seconds: amount.nullish(),
});

/** The id of a reservation; one that was never given out is `not_found`, whatever its form. */
const reservationId = anyId(REQUEST_LIMITS.idLengthMax);

function isReservationId(value: unknown): boolean {
  return isAnyId(value, REQUEST_LIMITS.idLengthMax);
}

export const commitInput = z.object({
  reservationId,
  extra: extra.nullish().describe("On top of what was held; not for a unit that actual has"),
  actual: actual.nullish().describe("In place of what was held"),
  costCents: amount.nullish().describe(
    `The event's whole cost, for reports; not with an extra or actual in cents. ${COUNTED_COST}`,
  ),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  addFaults(context, correctionFaults(input));
  if (reportsUsage(input)) addFaults(context, usageConflicts(input));
});

export const releaseInput = z.object({
  reservationId,
  reason: cutAt(REASON_LENGTH_MAX).nullish(),
  errorCode: cutAt(ERROR_CODE_LENGTH_MAX).nullish(),
  response: loggedText.nullish(),
});

const PLAIN_SETTLEMENT = { reservationId: isReservationId };
const OF_SETTLEMENT = ["reservationId"];

export const plainCommit = plainOf<typeof commitInput>(OF_SETTLEMENT, {
  ...PLAIN_SETTLEMENT,
  costCents: isAmount,
});
export const plainRelease = plainOf<typeof releaseInput>(OF_SETTLEMENT, PLAIN_SETTLEMENT);

interface MemberFault {
  readonly path: readonly string[];
  readonly message: string;
}

/** Members of a commit that contradict each other. Specification, "POST /v1/commit", rules 1 and 2. */
function* correctionFaults(input: {
  readonly extra?: z.infer<typeof extra> | null | undefined;
  readonly actual?: z.infer<typeof actual> | null | undefined;
  readonly costCents?: number | null | undefined;
}): Iterable<MemberFault> {
  const extras = input.extra ?? {};
  const actuals = input.actual ?? {};
  const cannot = (path: readonly string[], other: string) => ({
    path,
    message: `cannot be combined with ${other}`,
  });
  if (isSet(extras.tokens) && isSet(extras.outputTokens)) {
    yield cannot(["extra", "outputTokens"], "extra.tokens: both name the same amount");
  }
  if (isSet(extras.cents) && isSet(extras.outputCostCents)) {
    yield cannot(["extra", "outputCostCents"], "extra.cents: both name the same amount");
  }
  for (const [unit, ...names] of EXTRA_NAMES) {
    const name = names.find((name) => isSet(extras[name]));
    if (name !== undefined && isSet(actuals[unit])) yield cannot(["extra", name], `actual.${unit}`);
  }
  if (!isSet(input.costCents)) return;
  for (const name of ["cents", "outputCostCents"] as const) {
    if (isSet(extras[name])) yield cannot(["costCents"], `extra.${name}`);
  }
  if (isSet(actuals.cents)) yield cannot(["costCents"], "actual.cents");
}

/** Each unit with the names that its extra goes by. */
const EXTRA_NAMES = [
  ["count", "count"],
  ["tokens", "tokens", "outputTokens"],
  ["cents", "cents", "outputCostCents"],
  ["seconds", "seconds"],
] as const;

interface Reported {
  readonly usage?: Usage | null | undefined;
  readonly providerUsage?: Usage | null | undefined;
}

function reportsUsage({ usage, providerUsage }: Reported): boolean {
  return isSet(usage) || isSet(providerUsage);
}

/** Members of a commit that name what its usage already names. Section 9 of beyond.md, "Conflicts". */
function* usageConflicts(
  input: Reported & {
    readonly extra?: z.infer<typeof extra> | null | undefined;
    readonly actual?: z.infer<typeof actual> | null | undefined;
    readonly costCents?: number | null | undefined;
  },
): Iterable<MemberFault> {
  yield* conflictsOf(input, { costCents: input.costCents }, ["costCents"]);
  const seconds = input.usage?.seconds == null ? [] : ["seconds"];
  const extras = ["tokens", "outputTokens", "cents", "outputCostCents", ...seconds];
  yield* conflictsOf(input, input.extra ?? {}, extras, "extra");
  yield* conflictsOf(input, input.actual ?? {}, ["tokens", "cents", ...seconds], "actual");
}

/** The members among these that stand beside a usage. */
function* conflictsOf(
  reported: Reported,
  members: Readonly<Record<string, unknown>>,
  names: readonly string[],
  parent?: string,
): Iterable<MemberFault> {
  const name = isSet(reported.usage) ? "usage" : "providerUsage";
  if (parent === undefined && isSet(reported.usage) && isSet(reported.providerUsage)) {
    yield { path: ["providerUsage"], message: "cannot be combined with usage" };
  }
  for (const member of names) {
    if (!isSet(members[member])) continue;
    yield {
      path: parent === undefined ? [member] : [parent, member],
      message: `cannot be combined with ${name}`,
    };
  }
}

function addFaults(context: z.RefinementCtx, faults: Iterable<MemberFault>): void {
  for (const { path, message } of faults) context.addIssue({ code: "custom", message, path: [...path] });
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
