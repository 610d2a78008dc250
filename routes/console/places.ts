// Every page and action of the console with its address.

import { CREDIT_ACTS } from "./acts/credits.tsx";
import { KEY_ACTS } from "./acts/keys.tsx";
import { WEBHOOK_ACTS } from "./acts/webhooks.tsx";
import { appsPage } from "./pages/apps.tsx";
import { AUDIT_PAGES } from "./pages/audit.tsx";
import { catalogAction, catalogPage } from "./pages/catalog.tsx";
import { EVENT_PAGES } from "./pages/events.tsx";
import { keysPage } from "./pages/keys.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { refusalsPage } from "./pages/refusals.tsx";
import { SYSTEM_PAGES } from "./pages/system.tsx";
import { usagePage } from "./pages/usage.tsx";
import { WEBHOOK_PAGES } from "./pages/webhooks.tsx";
import { userPages } from "./pages/user.tsx";
import type { ActionAt, PageAt } from "./room.ts";

const ACTS = [...CREDIT_ACTS, ...KEY_ACTS, ...WEBHOOK_ACTS];

export const PAGES: readonly PageAt[] = [
  appsPage,
  overviewPage,
  usagePage,
  ...EVENT_PAGES,
  refusalsPage,
  catalogPage,
  keysPage,
  ...userPages,
  // Before the pages whose addresses end in an id.
  ...ACTS.map(({ page }) => page),
  ...WEBHOOK_PAGES,
  ...SYSTEM_PAGES,
  ...AUDIT_PAGES,
];

export const ACTIONS: readonly ActionAt[] = [catalogAction, ...ACTS.map(({ action }) => action)];
