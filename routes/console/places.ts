// Every page and action of the console with its address.

import { CLOCK_ACTS } from "./acts/clock.tsx";
import { CREDIT_ACTS } from "./acts/credits.tsx";
import { HOLD_ACTS } from "./acts/holds.tsx";
import { KEY_ACTS } from "./acts/keys.tsx";
import { PEOPLE_ACTS } from "./acts/people.tsx";
import { STRIPE_ACTS } from "./acts/stripe.tsx";
import { SUBSCRIPTION_ACTS } from "./acts/subscriptions.tsx";
import { WEBHOOK_ACTS } from "./acts/webhooks.tsx";
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
import type { ActionAt, PageAt } from "./room.ts";

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
