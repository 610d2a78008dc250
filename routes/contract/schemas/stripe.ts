// What the calls about Stripe take and answer. beyond.md, section 7.

import { z } from "zod";
import { STRIPE_LIMITS } from "../../../src/process/limits.ts";
import { SHOWN_AS } from "./fields.ts";
import { time } from "./records.ts";

export const mode = z.enum(["live", "test"]);

/** The signing secret of an endpoint in Stripe. */
export const stripeSecret = z.string().refine(
  (text) =>
    /^whsec_[\x21-\x7e]+$/.test(text) && text.length >= STRIPE_LIMITS.secretLengthMin && text.length <= 200,
  `must be the signing secret of an endpoint: whsec_ and what follows, ${STRIPE_LIMITS.secretLengthMin} to 200 characters`,
).register(SHOWN_AS, {
  type: "string",
  pattern: "^whsec_",
  minLength: STRIPE_LIMITS.secretLengthMin,
  maxLength: 200,
});

const ofMode = z.strictObject({
  isSet: z.boolean().describe("Whether messages of this mode are taken."),
  setAt: time.nullable(),
  path: z.string().describe("Where Stripe is to send to, below this service's own address."),
  lastMessage: z.strictObject({
    eventId: z.string(),
    type: z.string(),
    at: time,
    handled: z.boolean(),
    reason: z.string().nullable().describe("Why it changed nothing; null where it did something."),
  }).nullable().describe("The message with a good signature that came last since the secret was set."),
});

/** How Stripe is set up for an app. */
export const stripeAnswer = z.strictObject({ live: ofMode, test: ofMode });

const subscriptionDone = z.strictObject({
  did: z.enum(["subscription_written", "subscription_ended"]),
  userId: z.string(),
  subscriptionId: z.string(),
  planId: z.string(),
  endsAt: time.nullable(),
});
const creditsDone = z.strictObject({
  did: z.enum(["credits_granted", "credits_revoked"]),
  userId: z.string(),
  externalRef: z.string(),
  balanceIds: z.array(z.string()),
});

/** What a message came to. */
export const receivedAnswer = z.union([
  z.strictObject({
    handled: z.literal(true),
    done: z.array(z.union([subscriptionDone, creditsDone])),
    warnings: z.array(z.string()),
  }),
  z.strictObject({ handled: z.literal(false), reason: z.string() }),
]);
