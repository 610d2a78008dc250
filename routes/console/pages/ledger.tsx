// The whole ledger of a user's credits, page by page.

import type { LedgerEntry, LedgerPage } from "../../../src/client/wire_types.ts";
import type { CreditBalance } from "../../../src/client/wire_types.ts";
import { aboutUser, placeOfUser, refusedPage } from "../parts/subject.tsx";
import type { AppMode } from "../parts/ask.ts";
import { csvFile, csvQuery, wantsCsv } from "../parts/csv.ts";
import { FILE_ROWS } from "../parts/pager.tsx";
import type { Download, PageAt, PageRequest } from "../parts/page_context.ts";
import { LedgerTable } from "./user_records.tsx";

const SHOWN = "100";
const PAGE_MAX = 500;

/** The newest entries as a file. */
async function ledgerFile(
  { ask }: PageRequest,
  app: AppMode,
  asked: Record<string, string | undefined>,
): Promise<Download> {
  const entries: LedgerEntry[] = [];
  let cursor: string | undefined;
  while (entries.length < FILE_ROWS) {
    const page = await ask.app<LedgerPage>(app, "listLedger", { ...asked, limit: String(PAGE_MAX), cursor });
    if (!page.ok) break;
    entries.push(...page.data.entries);
    if (page.data.nextCursor === null) break;
    cursor = page.data.nextCursor;
  }
  const columns = [
    "occurredAt",
    "delta",
    "reason",
    "packId",
    "balanceId",
    "eventId",
    "reservationId",
    "notes",
  ] as const;
  return csvFile(
    `ledger-${app.mode}`,
    columns,
    entries.slice(0, FILE_ROWS).map((entry) => columns.map((column) => entry[column])),
  );
}

/** `/console/apps/{appId}/{mode}/users/{id}/ledger` */
export const ledgerPage: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId/ledger",
  async show(request) {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const { ask, query, path } = request;
    const { app, user } = subject;
    const { userId } = user;
    const asked = {
      userId,
      limit: SHOWN,
      cursor: query.get("cursor") ?? undefined,
      balanceId: query.get("balanceId") ?? undefined,
    };
    if (wantsCsv(query)) return await ledgerFile(request, app, asked);
    const [page, listed] = await Promise.all([
      ask.app<LedgerPage>(app, "listLedger", asked),
      ask.app<{ credits: CreditBalance[] }>(app, "listCredits", { userId, includeExpired: "true" }),
    ]);
    if (!page.ok) return refusedPage(page.error);
    const { entries, nextCursor } = page.data;
    const { crumbs } = placeOfUser(request, subject);
    const next = new URLSearchParams(query);
    if (nextCursor !== null) next.set("cursor", nextCursor);
    return {
      title: "Credit ledger",
      crumbs: [...crumbs, { title: "Credit ledger", href: null }],
      content: (
        <section class="sheet">
          <h1>Credit ledger</h1>
          {entries.length === 0
            ? <p class="empty">No credits have moved yet.</p>
            : <LedgerTable entries={entries} balances={listed.ok ? listed.data.credits : []} />}
          <p class="hint">
            <a href={csvQuery(query)} download>The newest 1,000 as CSV</a>
          </p>
          <div class="pager">
            {query.has("cursor") ? <a href={path}>Newest</a> : null}
            {nextCursor === null ? null : <a href={`${path}?${next}`}>Older</a>}
          </div>
        </section>
      ),
    };
  },
};
