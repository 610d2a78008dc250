// Every page and action of the console with its address.

import { appsPage } from "./pages/apps.tsx";
import { overviewPage } from "./pages/overview.tsx";
import { userPages } from "./pages/user.tsx";
import type { ActionAt, PageAt } from "./room.ts";

export const PAGES: readonly PageAt[] = [appsPage, overviewPage, ...userPages];

export const ACTIONS: readonly ActionAt[] = [];
