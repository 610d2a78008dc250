// Users of an app: plan, fullest limit, cost, refusals and last call of each, sorted and filtered, also as CSV.

import { appOf, dataOf, PageError } from "../parts/subject.tsx";
import { readCatalog, type ShownCatalog } from "../parts/catalog.ts";
import { csvStream } from "../parts/csv.ts";
import type { ApiCaller, AppMode } from "../parts/ask.ts";
import { Filter, FilterSelect, FilterText } from "../parts/filter.tsx";
import { AmountText, TimeOr } from "../parts/format.tsx";
import { appPath, crumbsOf, userPath } from "../parts/page.tsx";
import { CursorPager, PAGE_ROWS } from "../parts/pager.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { type Column, Table } from "../parts/table.tsx";
import type { AnswerOf, InputOf } from "../../contract/definition.ts";
import { listUsers } from "../../contract/admin_users.ts";

type UserList = AnswerOf<typeof listUsers>;
/** A user in the list. */
export type ListedUser = UserList["users"][number];
type Sort = "limit" | "cost" | "refusals" | "lastSeen" | "id" | "plan";

/** Rows of a CSV file. */
const FILE_ROWS = 100_000;
const ASK_ROWS = 100;
const SORTS: readonly string[] = ["limit", "cost", "refusals", "lastSeen", "id", "plan"] satisfies Sort[];
const FILTERS = { near: "near a limit", hit: "hit a limit" } as const;
const NEAR = 80;
const FULL = 100;

/** `/console/apps/{appId}/{mode}/users` */
const usersPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users",
  async show(request) {
    const { query, path, ask } = request;
    const app = appOf(request);
    const asked = askedOf(query);
    const cursor = query.get("cursor") || undefined;
    const [{ users, nextCursor, isExact }, catalog] = await Promise.all([
      ask.admin(listUsers, { ...app, ...asked, cursor, limit: String(PAGE_ROWS) }).then(dataOf),
      readCatalog(request, app),
    ]);
    const isFiltered = [asked.filter, asked.plan, asked.q].some((value) => value !== undefined);
    return {
      title: "Users",
      crumbs: crumbsOf(app, "Users"),
      content: (
        <>
          <div class="head">
            <h1>Users</h1>
            <span class="soft">as of each user's last call</span>
          </div>
          <UserFilter path={path} asked={asked} catalog={catalog} isFiltered={isFiltered} />
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {users.length > 0
              ? <Table rows={users} columns={columnsOf(app, request, asked, catalog)} />
              : <p class="empty">{emptyText(isFiltered, nextCursor)}</p>}
            <CursorPager query={query} cursor={nextCursor} first="First page" next="Next page" />
          </section>
          {isExact ? null : <p class="hint">{inexactText(asked.q !== undefined)}</p>}
          <p class="hint">
            Plan, limit and time are of the user's last call. Refused calls update the time once an hour. Cost
            is of 30 days, refusals are of 7 days, both up to now.{" "}
            <a href={`${path}.csv?${filterQuery(query)}`} download>
              Export CSV (up to {FILE_ROWS.toLocaleString("en-US")})
            </a>
          </p>
        </>
      ),
    };
  },
};

/** `/console/apps/{appId}/{mode}/users.csv` */
const usersFile: PageRoute = {
  path: "/console/apps/:appId/:mode/users.csv",
  async show(request) {
    const app = appOf(request);
    const pages = pagesOf(request.ask, app, askedOf(request.query));
    const first = await pages.next();
    if (first.done !== true && "error" in first.value) throw new PageError(first.value.error);
    return csvStream(
      `users-${app.mode}`,
      [
        "userId",
        "planId",
        "planName",
        "limitGroupId",
        "limitPercent",
        "costCents30d",
        "refusals7d",
        "lastSeenAt",
      ],
      rowsOf(first, pages),
    );
  },
};

export const USER_LIST_PAGES: readonly PageRoute[] = [usersPage, usersFile];

type Asked = Pick<InputOf<typeof listUsers>, "sort" | "order" | "filter" | "plan" | "q">;

/** What the query asks for; unknown values of a link are left out. */
function askedOf(query: URLSearchParams): Asked & { readonly sort: Sort } {
  const sort = query.get("sort") ?? "";
  const order = query.get("order");
  const filter = query.get("filter");
  return {
    sort: SORTS.includes(sort) ? sort as Sort : "limit",
    order: order === "asc" || order === "desc" ? order : undefined,
    filter: filter === "near" || filter === "hit" ? filter : undefined,
    plan: query.get("plan") || undefined,
    q: query.get("q") || undefined,
  };
}

function filterQuery(query: URLSearchParams): URLSearchParams {
  const copy = new URLSearchParams(query);
  copy.delete("cursor");
  return copy;
}

function UserFilter({ path, asked, catalog, isFiltered }: {
  path: string;
  asked: Asked;
  catalog: ShownCatalog;
  isFiltered: boolean;
}) {
  const { plans = [] } = catalog;
  const names = new Map(plans.map(({ id, name }) => [id, name]));
  return (
    <Filter path={path} isFiltered={isFiltered}>
      <FilterText name="q" label="Search" value={asked.q} placeholder="ID, email, name, cus_…" />
      <FilterSelect
        name="filter"
        label="Limits"
        none="all users"
        options={["near", "hit"] as const}
        value={asked.filter}
        textOf={(filter) => FILTERS[filter]}
      />
      <FilterSelect
        name="plan"
        label="Plan"
        none="all plans"
        options={plans.map(({ id }) => id)}
        value={asked.plan}
        textOf={(id) => names.get(id) ?? id}
      />
      <input type="hidden" name="sort" value={asked.sort} />
      {asked.order === undefined ? null : <input type="hidden" name="order" value={asked.order} />}
    </Filter>
  );
}

function columnsOf(
  app: AppMode,
  { path, query }: PageRequest,
  asked: Asked,
  catalog: ShownCatalog,
): Column<ListedUser>[] {
  const sorted = (sort: Sort) => {
    const first = sort === "id" || sort === "plan" ? "asc" : "desc";
    const order = asked.sort === sort ? asked.order ?? first : null;
    const next = order === null ? first : order === "asc" ? "desc" : "asc";
    const copy = filterQuery(query);
    copy.set("sort", sort);
    copy.set("order", next);
    const now = order === null ? null : order === "asc" ? "ascending" as const : "descending" as const;
    return { sort: { href: `${path}?${copy}`, order: now } };
  };
  return [
    { head: "User", ...sorted("id"), cell: (user) => <UserLink app={app} user={user} /> },
    { head: "Plan", ...sorted("plan"), cell: ({ planName }) => planName ?? <span class="soft">none</span> },
    {
      head: "Fullest limit",
      ...sorted("limit"),
      cell: (user) => <Fullness user={user} catalog={catalog} />,
    },
    {
      head: "Cost, 30 days",
      ...sorted("cost"),
      kind: "number",
      cell: ({ costCents30d }) => <AmountText value={costCents30d} unit="cents" />,
    },
    {
      head: "Refusals, 7 days",
      ...sorted("refusals"),
      kind: "number",
      cell: ({ userId, refusals7d }) =>
        refusals7d === 0 ? "0" : (
          <a href={`${appPath(app)}/refusals?user=${encodeURIComponent(userId)}`}>
            <AmountText value={refusals7d} />
          </a>
        ),
    },
    {
      head: "Last seen",
      ...sorted("lastSeen"),
      cell: ({ lastSeenAt }) => <TimeOr at={lastSeenAt} none="never" />,
    },
  ];
}

/** A link to the user, with what is special about the ID. */
export function UserLink(
  { app, user: { userId, aliasOf, deletionPending } }: { app: AppMode; user: ListedUser },
) {
  return (
    <>
      <a class="row" href={userPath(app, userId)}>{userId}</a>
      {aliasOf === null ? null : <span class="soft">alias of {aliasOf}</span>}
      {deletionPending ? <span class="tag bad">deletion pending</span> : null}
    </>
  );
}

/** The fullest limit as a bar with its percent. */
export function Fullness(
  { user: { planId, fullest }, catalog }: { user: ListedUser; catalog: ShownCatalog },
) {
  if (fullest === null) return <span class="soft">no limits</span>;
  const { groupId, percent } = fullest;
  const plan = catalog.plans?.find(({ id }) => id === planId);
  const label = plan?.limits.find(({ id }) => id === groupId)?.label ?? groupId;
  const level = percent >= FULL ? "full" : percent >= NEAR ? "near" : undefined;
  const word = level === undefined ? "" : level === "full" ? ", full" : ", near limit";
  return (
    <div>
      <span>
        {label} <b>{percent.toLocaleString("en-US")} %</b>
      </span>
      <svg
        class="meter"
        role="img"
        aria-label={`${label}: ${percent} %${word}`}
        data-level={level}
        preserveAspectRatio="none"
      >
        <rect class="left" width="100%" height="100%" />
        <rect class="used" width={`${Math.min(percent, FULL)}%`} height="100%" />
      </svg>
    </div>
  );
}

function emptyText(isFiltered: boolean, next: string | null): string {
  if (next !== null) return "No results so far. Continue on the next page.";
  return isFiltered
    ? "No results match these filters."
    : "No users yet. A user is created by the first subscription, credit or call.";
}

/** The hint below results of a search that may not be all. */
export const INEXACT_SEARCH =
  "More users may match: a search looks through 50,000 IDs and people, and finds up to 1,000 users. The beginning of an " +
  "ID, with its capitals, and of an email is always found.";

function inexactText(isSearch: boolean): string {
  return isSearch
    ? INEXACT_SEARCH
    : "Sorted among the users who lead on any day or in any hour. Other users follow by ID.";
}

type FilePage =
  | readonly ListedUser[]
  | Extract<Awaited<ReturnType<ApiCaller["admin"]>>, { readonly ok: false }>;

/** Reads the pages of a list, up to the rows of a file; a failed call is the last page. */
async function* pagesOf(ask: ApiCaller, app: AppMode, asked: Asked): AsyncGenerator<FilePage, void> {
  let cursor: string | undefined;
  for (let rows = 0; rows < FILE_ROWS;) {
    const page = await ask.admin(listUsers, { ...app, ...asked, cursor, limit: String(ASK_ROWS) });
    if (!page.ok) return yield page;
    yield page.data.users;
    rows += page.data.users.length;
    if (page.data.nextCursor === null) return;
    cursor = page.data.nextCursor;
  }
}

/** The rows of the file. A call that fails after the first page breaks it off, which browsers show as a failed download. */
async function* rowsOf(first: IteratorResult<FilePage, void>, rest: AsyncGenerator<FilePage, void>) {
  for (let page = first; page.done !== true; page = await rest.next()) {
    if ("error" in page.value) throw new Error("The list of users could not be read");
    yield page.value.map(({ fullest, ...user }) => ({
      ...user,
      limitGroupId: fullest?.groupId ?? null,
      limitPercent: fullest?.percent ?? null,
    }));
  }
}
