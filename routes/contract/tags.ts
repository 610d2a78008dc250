// The sections of the API reference.

/** The sections in their order, each with a description. */
export const TAGS = {
  Metering: "Reserve quota before the work and settle it afterwards, or count finished work.",
  Usage: "Usage of users, and the plans on offer.",
  Accounts: "Organisations, teams and their members: calls count at every level.",
  Runs: "Tasks of agents, each with limits that all of its calls share.",
  Subscriptions: "Which user is on which plan.",
  Credits: "Prepaid credits beside the plan, and their ledger.",
  "Top-ups": "Credits that users buy automatically when theirs run low.",
  Customers: "Several ids of one user.",
  Compose: "Structured output of a model, metered.",
  Gateway: "OpenAI's API in front of your model server, metered.",
  Events: "The feed of metered events, and refused calls.",
  People: "Analytics people: capture, identify, alias.",
  Privacy: "Consent, export and erasure of a person.",
  "Test mode": "The clock of test mode.",
  Administration: "Workspaces, apps, API keys, catalogs and the service itself. Requires the admin token.",
  Webhooks: "Webhook endpoints and deliveries. Requires the admin token.",
  Stripe: "Plans and credit packs sold through Stripe.",
  Service: "Pages of the process itself. No key required.",
} as const;

export type Tag = keyof typeof TAGS;
