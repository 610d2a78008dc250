// What the API reference says of an endpoint, beside what routing needs of it anyway: plain data that stands in the
// endpoint's own record, so that neither can change without the other in sight.

import type { z } from "zod";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";

/** The areas of the reference, in its order, with what each is about. */
export const TAGS = {
  Metering: "Hold quota before the work and settle it afterwards, or count work that is done.",
  Usage: "Where users stand, and the plans on offer.",
  Subscriptions: "Who is on which plan.",
  Credits: "Packs of credits beside the plan, and their ledger.",
  Customers: "One user with several ids.",
  Compose: "A model's structured answer, metered.",
  Gateway: "OpenAI's API in front of the model server, metered.",
  Events: "The feed of everything that was counted.",
  People: "Analytics people: capture, identify, alias.",
  Privacy: "Consent, export and erasure.",
  "Test mode": "The clock of test mode.",
  Administration: "Workspaces, apps, keys and catalogs, with the admin token.",
  Webhooks: "Addresses that are told what happens, with the admin token.",
  Stripe: "Plans and packs that Stripe sells.",
  Service: "Pages of the process itself, without a key.",
} as const;

export type Tag = keyof typeof TAGS;

/** What the reference says of an endpoint. */
export interface EndpointDoc {
  /** The endpoint's name in generated clients. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** The `data` of a 200 answer. */
  readonly answer: z.ZodType;
  /** Error codes of its own, beside those that its key class and its method bring. */
  readonly errors: readonly RefusalCode[];
}
