// Every page and action of the console with its path.

import { ACCOUNT_ACTIONS } from "./pages/accounts_actions.tsx";
import { CLOCK_ACTIONS } from "./pages/clock_actions.tsx";
import { CREDIT_ACTIONS } from "./pages/credits_actions.tsx";
import { HOLD_ACTIONS } from "./pages/holds_actions.tsx";
import { KEY_ACTIONS } from "./pages/keys_actions.tsx";
import { RUN_ACTIONS } from "./pages/runs_actions.tsx";
import { PEOPLE_ACTIONS } from "./pages/people_actions.tsx";
import { SPEND_CAP_ACTIONS } from "./pages/spend_cap_actions.tsx";
import { STRIPE_ACTIONS } from "./pages/stripe_actions.tsx";
import { OFFER_ACTIONS } from "./pages/offers_actions.tsx";
import { SUBSCRIPTION_ACTIONS } from "./pages/subscriptions_actions.tsx";
import { WEBHOOK_ACTIONS } from "./pages/webhooks_actions.tsx";
import { childrenPage } from "./pages/accounts.tsx";
import { appsPage } from "./pages/apps.tsx";
import { AUDIT_PAGES } from "./pages/audit.tsx";
import { CATALOG_ACTIONS } from "./pages/catalog_actions.tsx";
import { catalogAction, catalogPage } from "./pages/catalog.tsx";
import { whatIfAction, whatIfPage } from "./pages/what_if.tsx";
import { CATALOG_VERSION_PAGES } from "./pages/catalog_versions.tsx";
import { EVENT_PAGES } from "./pages/events.tsx";
import { explainPage } from "./pages/explain.tsx";
import { keysPage } from "./pages/keys.tsx";
import { ledgerPage } from "./pages/ledger.tsx";
import { marginsPage } from "./pages/margins.tsx";
import { mergePage } from "./pages/merge.tsx";
import { membersPage } from "./pages/members.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { refusalsPage } from "./pages/refusals.tsx";
import { requestsPage } from "./pages/requests.tsx";
import { runsPage } from "./pages/runs.tsx";
import { searchPage } from "./pages/search.tsx";
import { stripePage } from "./pages/stripe.tsx";
import { SYSTEM_PAGES } from "./pages/system.tsx";
import { usagePage } from "./pages/usage.tsx";
import { WEBHOOK_PAGES } from "./pages/webhooks.tsx";
import { USER_KEY_ACTIONS } from "./pages/user_keys_actions.tsx";
import { userPages } from "./pages/user.tsx";
import { USER_LIST_PAGES } from "./pages/users.tsx";
import type { ActionRoute, PageRoute } from "./parts/page_context.ts";

const STEPPED_ACTIONS = [
  ...CREDIT_ACTIONS,
  ...SUBSCRIPTION_ACTIONS,
  ...OFFER_ACTIONS,
  ...HOLD_ACTIONS,
  ...PEOPLE_ACTIONS,
  ...ACCOUNT_ACTIONS,
  ...RUN_ACTIONS,
  ...CLOCK_ACTIONS,
  ...CATALOG_ACTIONS,
  ...KEY_ACTIONS,
  ...USER_KEY_ACTIONS,
  ...WEBHOOK_ACTIONS,
  ...STRIPE_ACTIONS,
  ...SPEND_CAP_ACTIONS,
];

export const PAGES: readonly PageRoute[] = [
  appsPage,
  overviewPage,
  marginsPage,
  usagePage,
  ...EVENT_PAGES,
  refusalsPage,
  requestsPage,
  catalogPage,
  whatIfPage,
  ...CATALOG_VERSION_PAGES,
  keysPage,
  searchPage,
  ...USER_LIST_PAGES,
  ...userPages,
  childrenPage,
  membersPage,
  runsPage,
  explainPage,
  ledgerPage,
  mergePage,
  // Before the pages whose paths end in an ID.
  ...STEPPED_ACTIONS.map(({ page }) => page),
  ...WEBHOOK_PAGES,
  stripePage,
  ...SYSTEM_PAGES,
  ...AUDIT_PAGES,
];

export const ACTIONS: readonly ActionRoute[] = [
  catalogAction,
  whatIfAction,
  ...STEPPED_ACTIONS.map(({ action }) => action),
];
