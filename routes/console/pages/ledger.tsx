// The whole credit ledger of a user, page by page.

import { dataOf, loadUser, userLocation } from "../parts/subject.tsx";
import type { AppMode } from "../parts/ask.ts";
import { csvFile, wantsCsv } from "../parts/csv.ts";
import { CsvLink, FILE_ROWS } from "../parts/pager.tsx";
import type { Download, PageRequest, PageRoute } from "../parts/page_context.ts";
import { nowOf } from "../parts/daily_usage.tsx";
import { LedgerTable } from "./user_records.tsx";
import type { AnswerOf, InputOf } from "../../contract/definition.ts";
import { listCredits, listLedger } from "../../contract/credits.ts";

const SHOWN = "100";
const PAGE_MAX = 500;

/** The newest entries as CSV. */
async function ledgerFile(
  { ask }: PageRequest,
  app: AppMode,
  asked: InputOf<typeof listLedger>,
): Promise<Download> {
  const entries: AnswerOf<typeof listLedger>["entries"] = [];
  let cursor: string | undefined;
  while (entries.length < FILE_ROWS) {
    const page = await ask.app(app, listLedger, { ...asked, limit: String(PAGE_MAX), cursor });
    if (!page.ok) break;
    entries.push(...page.data.entries);
    if (page.data.nextCursor === null) break;
    cursor = page.data.nextCursor;
  }
  return csvFile(
    `ledger-${app.mode}`,
    ["occurredAt", "delta", "reason", "packId", "balanceId", "eventId", "reservationId", "notes"],
    entries.slice(0, FILE_ROWS),
  );
}

/** `/console/apps/{appId}/{mode}/users/{id}/ledger` */
export const ledgerPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/ledger",
  async show(request) {
    const subject = await loadUser(request);
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
    const [{ entries, nextCursor }, listed, now] = await Promise.all([
      ask.app(app, listLedger, asked).then(dataOf),
      ask.app(app, listCredits, { userId, includeExpired: "true" }),
      nowOf(request, app),
    ]);
    const { crumbs } = userLocation(subject);
    const next = new URLSearchParams(query);
    if (nextCursor !== null) next.set("cursor", nextCursor);
    return {
      title: "Credit ledger",
      crumbs: [...crumbs, { title: "Credit ledger", href: null }],
      content: (
        <section class="card">
          <h1>Credit ledger</h1>
          {entries.length === 0 ? <p class="empty">No credit changes yet</p> : (
            <LedgerTable
              app={app}
              entries={entries}
              balances={listed.ok ? listed.data.credits : []}
              now={now}
            />
          )}
          <p class="hint">
            <CsvLink query={query} />
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
