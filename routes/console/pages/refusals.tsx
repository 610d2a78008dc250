// Refused calls: users who hit a limit. Equal refusals within an hour are one row.

import { groupLabels, readCatalog } from "../parts/catalog.ts";
import { appOf } from "../parts/subject.tsx";
import { csvFile } from "../parts/csv.ts";
import type { AppMode } from "../parts/ask.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { crumbsOf, userPath } from "../parts/page.tsx";
import { CsvLink, listAsAsked, Pager } from "../parts/pager.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { type Column, Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listRefusals } from "../../contract/refused_calls.ts";

/** Refused calls as the API lists them. */
export type ShownRefusals = AnswerOf<typeof listRefusals>["refusals"][number];

const TITLE = "Limits hit";

/** `/console/apps/{appId}/{mode}/refusals` */
export const refusalsPage: PageRoute = {
  path: "/console/apps/:appId/:mode/refusals",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const userId = query.get("user") || undefined;
    const event = query.get("type") || undefined;
    const refusedBy = query.get("by") || undefined;
    const listed = await listAsAsked(query, {
      read: (part) => ask.app(app, listRefusals, { userId, event, refusedBy, ...part }),
      rowsOf: ({ refusals }) => refusals,
      fileOf: (rows) => refusalsFile(app.mode, rows),
    });
    if (!("rows" in listed)) return listed;
    const { rows: refusals, offset } = listed;
    const labels = groupLabels(await readCatalog(request, app));
    const isFiltered = [userId, event, refusedBy].some((value) => value !== undefined);
    return {
      title: TITLE,
      crumbs: crumbsOf(app, TITLE),
      content: (
        <>
          <div class="head">
            <h1>{TITLE}</h1>
            <span class="soft">refused calls of the last 90 days</span>
          </div>
          <Filter path={path} isFiltered={isFiltered}>
            <FilterText name="user" label="User" value={userId} />
            <FilterText name="type" label="Event type" value={event} />
            <FilterText name="by" label="Refused by" value={refusedBy} />
          </Filter>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {refusals.length > 0 ? <Refusals {...{ app, refusals, labels }} /> : (
              <p class="empty">
                {isFiltered
                  ? "No results match these filters. IDs and event types are matched exactly."
                  : "No refusals in the last 90 days. A user who hits a limit is listed here within seconds."}
              </p>
            )}
            <Pager query={query} offset={offset} rows={refusals.length} />
          </section>
          {refusals.length === 0 ? null : (
            <p class="hint">
              Open a user and choose “Why was this refused?” for details. <CsvLink query={query} />
            </p>
          )}
        </>
      ),
    };
  },
};

function refusalsFile(mode: string, rows: readonly ShownRefusals[]) {
  const by = rows.some(hasRefusers) ? ["refusedBy"] : [];
  return csvFile(
    `refusals-${mode}`,
    ["lastAt", "firstAt", "userId", "event", "reasons", "groupIds", ...by, "count"],
    rows.map((row) => ({
      ...row,
      reasons: row.reasons.join(" "),
      groupIds: row.groupIds.join(" "),
      refusedBy: row.refusedBy?.join(" ") ?? "",
    })),
  );
}

function Refusals({ app, refusals, labels }: {
  app: AppMode;
  refusals: readonly ShownRefusals[];
  labels: ReadonlyMap<string, string>;
}) {
  return (
    <Table
      rows={refusals}
      columns={[
        { head: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} /> },
        { head: "User", cell: ({ userId }) => <a class="row" href={userPath(app, userId)}>{userId}</a> },
        { head: "Event type", cell: ({ event }) => event },
        { head: "Reason", cell: (row) => <Reasons row={row} labels={labels} /> },
        refusedByColumn(app, refusals),
        { head: "Calls", kind: "number", cell: ({ count }) => <AmountText value={count} /> },
        { head: "First seen", cell: ({ firstAt }) => <Time at={firstAt} /> },
      ]}
    />
  );
}

function hasRefusers({ refusedBy }: ShownRefusals): boolean {
  return refusedBy !== undefined;
}

/** The column with the users of the path that refused; null where no row has any. */
export function refusedByColumn(
  app: AppMode,
  rows: readonly ShownRefusals[],
): Column<ShownRefusals> | null {
  if (!rows.some(hasRefusers)) return null;
  return {
    head: "Refused by",
    cell: ({ refusedBy = [] }) =>
      refusedBy.map((userId, place) => (
        <>
          {place === 0 ? "" : ", "}
          <a href={userPath(app, userId)}>{userId}</a>
        </>
      )),
  };
}

/** The reasons of refusals by their codes. */
export const REASONS: Readonly<Record<ShownRefusals["reasons"][number], string>> = {
  limit_reached: "limit reached",
  reservation_headroom_exceeded: "headroom limit reached",
  member_limit_reached: "member limit reached",
  run_limit_reached: "limit of a run reached",
  rate_limit_reached: "rate limit reached",
  concurrency_limit_reached: "too many calls at once",
  no_subscription: "no plan",
  unmatched_event: "unmetered event type",
  unpriced_model: "unpriced model",
  workspace_limit_reached: "workspace cap reached",
  test_quota_exceeded: "test mode cap reached",
  ai_budget_exceeded: "AI budget used up",
};

/** The reasons, with the limits that were reached: those that the catalog has by their labels, others by their IDs. */
function Reasons(
  { row: { reasons, groupIds }, labels }: { row: ShownRefusals; labels: ReadonlyMap<string, string> },
) {
  return (
    <span title={[...reasons, ...groupIds].join(", ")}>
      {reasons.map((reason) => REASONS[reason]).join(", ")}
      {groupIds.length === 0 ? null : `: ${groupIds.map((id) => labels.get(id) ?? id).join(", ")}`}
    </span>
  );
}
