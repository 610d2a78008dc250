// Members that reserve, track, can-use and explain share: who uses what, and how much.

import type { z } from "zod";
import {
  amount,
  anyId,
  endUserId,
  eventName,
  isAmount,
  isAnyId,
  isEndUserId,
  isEventName,
  isPositiveAmount,
  metadata,
  positiveAmount,
  readMetadata,
} from "./fields.ts";
import type { Metadata } from "../../src/domain/values/match.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const size = {
  count: positiveAmount.nullish().describe(
    "How many: units in limit groups that count; also multiplies the price of a call or image. Default 1",
  ),
  quantity: positiveAmount.nullish().describe(
    "Seconds in limit groups in seconds; also the quantity of the event. Default 1. How many is count",
  ),
  inputTokens: amount.nullish().describe(
    "Tokens in limit groups in tokens; also priced in cents by the model's price",
  ),
  inputCostCents: amount.nullish().describe(
    "Cents in limit groups in cents, instead of the model's price of the input",
  ),
};

/** What a hold takes beyond the input. */
export const heldMembers = {
  maxOutputTokens: positiveAmount.nullish().describe(
    "Maximum output tokens: reserved together with inputTokens, and priced in cents by the model's price",
  ),
  cacheWriteTokens: amount.nullish().describe(
    "The part of inputTokens that may be written to the cache of the provider: reserved in cents at the " +
      "price of cache writes, if that is above the input price",
  ),
  cacheWrite1hTokens: amount.nullish().describe(
    "The part of cacheWriteTokens that is kept for an hour, at its own price",
  ),
};

/** How those members are read without their schema. */
export const PLAIN_HELD = {
  maxOutputTokens: isPositiveAmount,
} satisfies Record<string, Fits>;

/** Faults of a hold with parts larger than their whole. */
export function* heldFaults(input: {
  readonly inputTokens?: number | null | undefined;
  readonly cacheWriteTokens?: number | null | undefined;
  readonly cacheWrite1hTokens?: number | null | undefined;
}): Iterable<{ readonly path: readonly string[]; readonly message: string }> {
  const { inputTokens, cacheWriteTokens, cacheWrite1hTokens } = input;
  const isPart = "and it is smaller";
  if ((cacheWriteTokens ?? 0) > (inputTokens ?? 0)) {
    yield { path: ["cacheWriteTokens"], message: `is a part of inputTokens, ${isPart}` };
  }
  if ((cacheWrite1hTokens ?? 0) > (cacheWriteTokens ?? 0)) {
    yield { path: ["cacheWrite1hTokens"], message: `is a part of cacheWriteTokens, ${isPart}` };
  }
}

/** The user, the event and the amounts of a call. */
export const meteredCall = {
  userId: endUserId,
  event: eventName.describe("The event type, such as image.render"),
  metadata: metadata.nullish().describe(
    "Matched by the rules of limit groups; its member model selects the price",
  ),
  ...size,
  runId: anyId(REQUEST_LIMITS.idLengthMax).nullish().describe(
    "A run of the user: the call is refused where a limit of the run, or of a run around it, leaves no room",
  ),
};

type Members = Readonly<Record<string, unknown>>;
/** Checks that the schema would leave a value unchanged; "read" for metadata, which is parsed. */
type Fits = ((value: unknown) => boolean) | "read";

/**
 * Makes a reader of input that the schema would leave unchanged. It takes a tenth of the schema's
 * time, and makes a new object only for metadata. For any other input, valid or not, it returns null: the schema decides.
 *
 * @param required members that must be present
 * @param fits checks by member; other members are left to the schema
 */
export function plainOf<Schema extends z.ZodType>(
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

/** How the members of `meteredCall` are read without their schema. */
export const PLAIN_CALL = {
  userId: isEndUserId,
  event: isEventName,
  metadata: "read",
  quantity: isPositiveAmount,
  count: isPositiveAmount,
  inputTokens: isAmount,
  inputCostCents: isAmount,
  runId: (value) => isAnyId(value, REQUEST_LIMITS.idLengthMax),
} satisfies Record<string, Fits>;
export const OF_CALL = ["userId", "event"];
