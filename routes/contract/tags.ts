// The areas of the API reference, by which its calls are grouped.

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
