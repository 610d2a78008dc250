// Every page and action of the console with its address.

import { CREDIT_ACTS } from "./acts/credits.tsx";
import { appsPage } from "./pages/apps.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { userPages } from "./pages/user.tsx";
import type { ActionAt, PageAt } from "./room.ts";

const ACTS = [...CREDIT_ACTS];

export const PAGES: readonly PageAt[] = [
  appsPage,
  overviewPage,
  ...userPages,
  ...ACTS.map(({ page }) => page),
];

export const ACTIONS: readonly ActionAt[] = [...ACTS.map(({ action }) => action)];
