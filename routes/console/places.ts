// Every page and action of the console with its address.

import { CLOCK_ACTS } from "./acts/clock.tsx";
import { CREDIT_ACTS } from "./acts/credits.tsx";
import { HOLD_ACTS } from "./acts/holds.tsx";
import { PEOPLE_ACTS } from "./acts/people.tsx";
import { SUBSCRIPTION_ACTS } from "./acts/subscriptions.tsx";
import { appsPage } from "./pages/apps.tsx";
import { explainPage } from "./pages/explain.tsx";
import { ledgerPage } from "./pages/ledger.tsx";
import { mergePage } from "./pages/merge.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { searchPage } from "./pages/search.tsx";
import { userPages } from "./pages/user.tsx";
import type { ActionAt, PageAt } from "./room.ts";

const ACTS = [...CREDIT_ACTS, ...SUBSCRIPTION_ACTS, ...HOLD_ACTS, ...PEOPLE_ACTS, ...CLOCK_ACTS];

export const PAGES: readonly PageAt[] = [
  appsPage,
  overviewPage,
  ...userPages,
  explainPage,
  ledgerPage,
  mergePage,
  searchPage,
  ...ACTS.map(({ page }) => page),
];

export const ACTIONS: readonly ActionAt[] = [...ACTS.map(({ action }) => action)];
