// Every page and action of the console with its address.

import { CLOCK_ACTS } from "./pages/clock_actions.tsx";
import { CREDIT_ACTS } from "./pages/credits_actions.tsx";
import { HOLD_ACTS } from "./pages/holds_actions.tsx";
import { KEY_ACTS } from "./pages/keys_actions.tsx";
import { PEOPLE_ACTS } from "./pages/people_actions.tsx";
import { STRIPE_ACTS } from "./pages/stripe_actions.tsx";
import { SUBSCRIPTION_ACTS } from "./pages/subscriptions_actions.tsx";
import { WEBHOOK_ACTS } from "./pages/webhooks_actions.tsx";
import { appsPage } from "./pages/apps.tsx";
import { AUDIT_PAGES } from "./pages/audit.tsx";
import { catalogAction, catalogPage } from "./pages/catalog.tsx";
import { EVENT_PAGES } from "./pages/events.tsx";
import { explainPage } from "./pages/explain.tsx";
import { keysPage } from "./pages/keys.tsx";
import { ledgerPage } from "./pages/ledger.tsx";
import { mergePage } from "./pages/merge.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { refusalsPage } from "./pages/refusals.tsx";
import { searchPage } from "./pages/search.tsx";
import { stripePage } from "./pages/stripe.tsx";
import { SYSTEM_PAGES } from "./pages/system.tsx";
import { usagePage } from "./pages/usage.tsx";
import { WEBHOOK_PAGES } from "./pages/webhooks.tsx";
import { userPages } from "./pages/user.tsx";
import type { ActionAt, PageAt } from "./parts/page_context.ts";

const ACTS = [
  ...CREDIT_ACTS,
  ...SUBSCRIPTION_ACTS,
  ...HOLD_ACTS,
  ...PEOPLE_ACTS,
  ...CLOCK_ACTS,
  ...KEY_ACTS,
  ...WEBHOOK_ACTS,
  ...STRIPE_ACTS,
];

export const PAGES: readonly PageAt[] = [
  appsPage,
  overviewPage,
  usagePage,
  ...EVENT_PAGES,
  refusalsPage,
  catalogPage,
  keysPage,
  searchPage,
  ...userPages,
  explainPage,
  ledgerPage,
  mergePage,
  // Before the pages whose addresses end in an id.
  ...ACTS.map(({ page }) => page),
  ...WEBHOOK_PAGES,
  stripePage,
  ...SYSTEM_PAGES,
  ...AUDIT_PAGES,
];

export const ACTIONS: readonly ActionAt[] = [catalogAction, ...ACTS.map(({ action }) => action)];
