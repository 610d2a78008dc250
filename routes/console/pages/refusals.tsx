// Who met a limit: refused calls, alike ones of an hour as one row.

import { appOf } from "../parts/subject.tsx";
import { csvFile, csvQuery } from "../parts/csv.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { listAsAsked, Pager } from "../parts/pager.tsx";
import type { PageAt } from "../parts/page_context.ts";

/** Refused calls as the API shows them. */
export interface ShownRefusals {
  readonly userId: string;
  readonly event: string;
  readonly reasons: readonly string[];
  readonly groupIds: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** `/console/apps/{appId}/{mode}/refusals` */
export const refusalsPage: PageAt = {
  path: "/console/apps/:appId/:mode/refusals",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const userId = query.get("user") || undefined;
    const event = query.get("type") || undefined;
    const listed = await listAsAsked(query, {
      read: (part) => ask.app<{ refusals: ShownRefusals[] }>(app, "listRefusals", { userId, event, ...part }),
      rowsOf: ({ refusals }) => refusals,
      fileOf: (rows) =>
        csvFile(
          `refusals-${app.mode}`,
          ["lastAt", "firstAt", "userId", "event", "reasons", "groupIds", "count"],
          rows.map((row) => [
            row.lastAt,
            row.firstAt,
            row.userId,
            row.event,
            row.reasons.join(" "),
            row.groupIds.join(" "),
            row.count,
          ]),
        ),
    });
    if (!("rows" in listed)) return listed;
    const { rows: refusals, offset } = listed;
    const isFiltered = userId !== undefined || event !== undefined;
    return {
      title: "Refusals",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Refusals", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Refusals</h1>
            <span class="soft">who met a limit, in the last 90 days</span>
          </div>
          <Filter path={path} isFiltered={isFiltered}>
            <FilterText name="user" label="User" value={userId} />
            <FilterText name="type" label="Event" value={event} />
          </Filter>
          <section class="sheet">
            <h2 class="visually-hidden">The list</h2>
            {refusals.length > 0
              ? (
                <table class="stack">
                  <thead>
                    <tr>
                      <th>Last</th>
                      <th>User</th>
                      <th>Event</th>
                      <th>Why</th>
                      <th class="number">Calls</th>
                      <th>First of the hour</th>
                    </tr>
                  </thead>
                  <tbody>
                    {refusals.map((row) => (
                      <tr>
                        <td data-label="Last">
                          <Time at={row.lastAt} />
                        </td>
                        <td data-label="User">
                          <a class="row" href={userPath(app, row.userId)}>{row.userId}</a>
                        </td>
                        <td data-label="Event">{row.event}</td>
                        <td data-label="Why">
                          <Why row={row} />
                        </td>
                        <td data-label="Calls" class="number">
                          <AmountText value={row.count} />
                        </td>
                        <td data-label="First of the hour">
                          <Time at={row.firstAt} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )
              : (
                <p class="empty">
                  {isFiltered
                    ? "No refusal is like this. Ids and names of events are compared exactly."
                    : "Nobody was refused in the last 90 days. Whoever meets a limit shows here within seconds."}
                </p>
              )}
            <Pager query={query} offset={offset} rows={refusals.length} />
          </section>
          {refusals.length === 0 ? null : (
            <p class="hint">
              Open a user and ask “Why was this refused?” for the numbers.{" "}
              <a href={csvQuery(query)} download>The newest 1,000 as CSV</a>
            </p>
          )}
        </>
      ),
    };
  },
};

/** Reasons in words, by their codes. */
export const REASONS: Readonly<Record<string, string>> = {
  limit_reached: "the quota is used up",
  reservation_headroom_exceeded: "the headroom is kept free",
  no_subscription: "no plan",
  unmatched_event: "no limit covers it",
  unpriced_model: "the model has no price",
  workspace_limit_reached: "the workspace's cap is reached",
  test_quota_exceeded: "the cap of test mode is reached",
  ai_budget_exceeded: "the AI budget is spent",
};

/** The reasons in words, with the groups that had no room. */
function Why({ row: { reasons, groupIds } }: { row: ShownRefusals }) {
  return (
    <span title={reasons.join(", ")}>
      {reasons.map((reason) => REASONS[reason] ?? reason).join(", ")}
      {groupIds.length === 0 ? null : <>: {groupIds.map((id) => <code class="group-id">{id}</code>)}</>}
    </span>
  );
}
