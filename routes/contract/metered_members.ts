// Members that calls share which say what an AI call uses: reserve, track, can-use and explain.

import type { z } from "zod";
import {
  amount,
  endUserId,
  eventName,
  isAmount,
  isEndUserId,
  isEventName,
  isPositiveAmount,
  metadata,
  positiveAmount,
  readMetadata,
} from "./fields.ts";
import type { Metadata } from "../../src/domain/values/match.ts";

const size = {
  quantity: positiveAmount.nullish().describe("Seconds, in seconds groups; the event's quantity. Default 1"),
  count: positiveAmount.nullish().describe("In count groups. Default 1"),
  inputTokens: amount.nullish().describe("In tokens groups; also the base of cents from the model's price"),
  inputCostCents: amount.nullish().describe("In cents groups, in place of the model's price of the input"),
};

export const maxOutputTokens = positiveAmount.nullish().describe(
  "The longest answer: held with inputTokens, and in cents by the model's prices",
);

/** Who uses what, and how much. */
export const meteredCall = {
  userId: endUserId,
  event: eventName.describe("What is used, such as image.render"),
  metadata: metadata.nullish().describe("What rules look at; model names the row of prices"),
  ...size,
};

type Members = Readonly<Record<string, unknown>>;
/** Whether a value fits a member as it is; "read" for metadata, which is read. */
export type Fits = ((value: unknown) => boolean) | "read";

/**
 * What a schema makes of members that are all plain: the same, at a tenth of the time and without an object of its own.
 * Null where only the schema can say, for anything else and for everything that does not fit.
 *
 * @param required members that must be there
 * @param fits members that are taken as they are, and metadata where the call has it
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
} satisfies Record<string, Fits>;
export const OF_CALL = ["userId", "event"];
