// What goes past quotas: what was sold, and a customer's own cap.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { amount, endUserId, moment, nameOf } from "./fields.ts";
import { time, unit } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const DAYS_MAX = 92;
/** The longest span of a list. */
export const OVERAGE_SPAN_MS = DAYS_MAX * 24 * 3_600_000;

/** `GET /v1/overage`: the settled overage of a user by hour. */
export const listOverage = defineCall({
  id: "listOverage",
  method: "GET",
  path: "/v1/overage",
  access: "secret",
  input: z.object({
    userId: endUserId,
    from: moment.optional().describe(
      `Hours that begin at this time or later; ${DAYS_MAX} days before to by default`,
    ),
    to: moment.optional().describe(
      "Hours that begin before this time; the end of the running hour by default",
    ),
  }),
  tag: "Usage",
  summary: "List a user's overage by hour",
  description:
    "What limit groups sold past their quotas, settled, by UTC hour of the app's clock: the sums of the messages usage.overage, " +
    "and what the running hour has so far. An hour in which a window ends has an element for each window. " +
    `Oldest first; from and to are at most ${DAYS_MAX} days apart.`,
  answer: z.strictObject({
    overage: z.array(z.strictObject({
      userId: z.string(),
      groupId: z.string(),
      unit,
      hour: time.describe("The beginning of the hour"),
      amount: z.number(),
      total: z.number().describe("All of the window, up to and with this hour"),
    })),
  }),
  errors: [],
});

/** `PUT /v1/usage/spend-cap`: the most that a user lets a group sell. */
export const setSpendCap = defineCall({
  id: "setSpendCap",
  method: "PUT",
  path: "/v1/usage/spend-cap",
  access: "end_user",
  input: z.object({
    userId: endUserId.nullish(),
    groupId: nameOf(REQUEST_LIMITS.idLengthMax),
    max: amount.nullable().describe("From 0 to the max of the catalog; null for no cap of the user's own"),
  }),
  tag: "Usage",
  summary: "Set a user's own cap on overage",
  description:
    "The most that the limit group may sell to the user past its quota in a window. The cap is kept for the group's id, apart " +
    "from subscriptions. One below what is used refuses from then on. After a merge the lower cap of each group is in force. " +
    "With a public key, userId may be left out: it is the user of the token.",
  answer: z.strictObject({ userId: z.string(), groupId: z.string(), max: z.number().nullable() }),
  errors: [],
});
