// Margins: what plans bring in against what their calls cost.

import { z } from "zod";
import { endUserId, mode } from "./fields.ts";
import { defineCall } from "./definition.ts";
import { time } from "./records.ts";

const money = z.strictObject({
  amount: z.number().describe("In the smallest unit of the currency"),
  currency: z.string(),
});

/** `GET /admin/v1/apps/{appId}/margins` */
export const listMargins = defineCall({
  id: "listMargins",
  method: "GET",
  path: "/admin/v1/apps/:appId/margins",
  access: "admin",
  about: "appId",
  input: z.object({
    appId: z.string(),
    mode,
    userId: endUserId.optional().describe("Margins of this user only"),
  }),
  tag: "Administration",
  summary: "List margins of plans",
  description:
    "Of 30 days, the present one in UTC included: price x 30 / days of the period x seats - cost. A month has 30 days, " +
    "a year 365. Prices are `planPrices` of the catalog. Seats are those of now, without trials.",
  answer: z.strictObject({
    from: z.iso.date(),
    to: z.iso.date(),
    countedUntil: time.describe("The cost of later events is not counted yet"),
    seatsAt: time.describe("When the seats were counted"),
    plans: z.array(z.strictObject({
      planId: z.string().nullable().describe("Null for events without a plan, or stored without it"),
      planName: z.string().nullable().describe("Null for a plan that the catalog lacks"),
      price: money.nullable().describe("Of a seat and period; null for a plan without a price"),
      users: z.int().min(0),
      seats: z.int().min(0),
      revenue: money.nullable().describe("Null without a price, and for a plan with the period lifetime"),
      costCents: z.number(),
      unpriced: z.int().min(0).describe("Events of models without a price: their cost is unknown"),
      marginCents: z.number().nullable().describe("Null unless the price is in usd"),
    })).describe("Plans with a price, seats or events"),
  }),
  errors: ["not_found"],
});
