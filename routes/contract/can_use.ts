// Can-use and explain: what reserve would answer now, and why.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { isPositiveAmount } from "./fields.ts";
import { HOLD_SLIPS } from "./metering.ts";
import { maxOutputTokens, meteredCall, OF_CALL, PLAIN_CALL, plainOf } from "./metered_members.ts";
import { reasons, time, unit } from "./records.ts";

const input = z.object({ ...meteredCall, maxOutputTokens });
const plain = plainOf<typeof input>(OF_CALL, { ...PLAIN_CALL, maxOutputTokens: isPositiveAmount });

/** `POST /v1/can-use`: what reserve would answer now. */
export const canUse = defineCall({
  id: "canUse",
  method: "POST",
  path: "/v1/can-use",
  access: "secret",
  input,
  plain,
  slips: HOLD_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Ask what reserve would answer now",
  description: "Holds nothing, counts nothing and is free; the workspace's cap is left out.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    details: z.array(z.strictObject({
      groupId: z.string(),
      current: z.number(),
      quota: z.number(),
      resetsAt: time.nullable(),
      creditAvailable: z.number(),
      creditPacks: z.array(z.strictObject({
        packId: z.string(),
        packName: z.string(),
        available: z.number(),
      })),
    })),
  }),
  errors: [],
});

/** A limit group of the plan in force as an explanation shows it. */
const explainedGroup = z.strictObject({
  groupId: z.string(),
  label: z.string(),
  unit,
  covers: z.boolean().describe("Whether a rule of the group matches the call"),
  why: z.enum(["matched", "event", "metadata"])
    .describe("event: no rule names the event; metadata: a rule names it and asks for other metadata"),
  metadata: z.record(z.string(), z.strictObject({ wanted: z.string(), given: z.string().nullable() }))
    .optional().describe("With metadata: the keys in which the call differs from the nearest rule"),
  quota: z.number(),
  isCustom: z.boolean().describe("The subscription has a quota of its own"),
  headroom: z.strictObject({ mode: z.enum(["percent", "multiplier"]), value: z.number() }).nullable()
    .describe("The group's, else the plan's"),
  gate: z.number().nullable().describe("The effective limit of reserves where headroom is configured"),
  current: z.number(),
  held: z.number().describe("What open reservations hold of current"),
  need: z.number().nullable().describe("null, as room and fits, where the group does not cover the call"),
  room: z.number().nullable().describe("What the group alone can take under its gate, without credits"),
  fits: z.boolean().nullable().describe("Whether the need fits into that room"),
});

/** `POST /v1/explain`: what can-use says, and why. */
export const explain = defineCall({
  id: "explain",
  method: "POST",
  path: "/v1/explain",
  access: "secret",
  input,
  plain,
  slips: HOLD_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Ask why a call is allowed or refused",
  description:
    "What can-use says, with every limit group of the plan, every balance that has something left, and " +
    "a text for whoever must tell a customer. Like can-use it holds nothing, counts nothing and is free.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    text: z.string().describe("One or two sentences for a support person"),
    subscription: z.strictObject({ subscriptionId: z.string(), planId: z.string(), planName: z.string() })
      .nullable().describe("The one that the plan in force comes from"),
    groups: z.array(explainedGroup).describe("Every limit group of the plan, in its order"),
    credits: z.array(z.strictObject({
      balanceId: z.string(),
      packId: z.string(),
      packName: z.string(),
      unit,
      remaining: z.number(),
      expiresAt: time.nullable(),
      matches: z.boolean().describe("Whether a rule of the balance matches the call"),
      wouldPay: z.number().describe("What a reserve would take from it now; 0 where the call is refused"),
    })).describe("Every balance that can be spent, in the order of use"),
  }),
  errors: [],
});
