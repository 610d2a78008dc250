// Search: by a text inside a user's ID, email or name, a customer of Stripe, any ID or reference of Holdfast or of the
// caller, or the ID of a failed request.

import { appOf, dataOf } from "../parts/subject.tsx";
import { appPath, crumbsOf, userPath } from "../parts/page.tsx";
import type { AppMode } from "../parts/ask.ts";
import type { PageRequest, PageResult, PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listRequests } from "../../contract/requests.ts";
import { listUsers, lookUpId } from "../../contract/admin_users.ts";
import { INEXACT_SEARCH } from "./users.tsx";

/** The record that has an ID. */
export type FoundThing = AnswerOf<typeof lookUpId>["found"][number];
type ListedUser = AnswerOf<typeof listUsers>["users"][number];

const LISTED = "50";

/** `/console/apps/{appId}/{mode}/search?q=`. A "*" at the end lists the IDs that begin so, even where the text is an ID. */
export const searchPage: PageRoute = {
  path: "/console/apps/:appId/:mode/search",
  async show(request): Promise<PageResult> {
    const app = appOf(request);
    const asked = request.query.get("q") ?? "";
    const exact = await search(request, app, asked);
    // Copied text may have spaces around it; IDs may contain spaces too.
    const outcome = exact ?? (asked.trim() === asked ? null : await search(request, app, asked.trim()));
    if (outcome !== null) return outcome;
    return page(app, asked, <NoResults app={app} asked={asked} />, 404);
  },
};

/** The result of a search; null for no results. */
async function search(
  request: PageRequest,
  app: AppMode & { name: string },
  text: string,
): Promise<PageResult | null> {
  const isList = text.endsWith("*");
  const startsWith = isList ? text.slice(0, -1) : text;
  const { ask } = request;
  const ofApp = { appId: app.appId, mode: app.mode };
  const isSearch = !isList && text !== "";
  // Searching inside of texts looks through many of them, and is not needed where the text is an ID.
  const exact = isSearch ? await ask.admin(listUsers, { ...ofApp, startsWith: text, limit: "1" }) : null;
  if (exact?.ok === true && exact.data.users[0]?.userId === text) return { to: userPath(app, text) };
  const [listed, found, failed] = await Promise.all([
    ask.admin(listUsers, {
      ...ofApp,
      ...isSearch ? { q: text } : { startsWith },
      limit: LISTED,
      cursor: request.query.get("cursor") ?? undefined,
    }),
    isSearch ? ask.admin(lookUpId, { ...ofApp, id: text }) : null,
    isSearch ? ask.admin(listRequests, { ...ofApp, requestId: text }) : null,
  ]);
  const { users, nextCursor, isExact } = dataOf(listed, "Search failed");
  const things = found?.ok === true ? found.data.found : [];
  const [first] = users;
  if (users.length + things.length === 0) {
    const isRequest = failed?.ok === true && failed.data.requests.length > 0;
    return isRequest ? { to: `${appPath(app)}/requests?${new URLSearchParams({ requestId: text })}` } : null;
  }
  const [thing] = things;
  if (users.length === 0 && things.length === 1 && thing !== undefined) return { to: pathOf(app, thing) };
  if (!isList && things.length === 0 && users.length === 1 && first !== undefined) {
    return { to: userPath(app, first.userId) };
  }
  return page(
    app,
    text,
    <>
      {things.length === 0 ? null : <Things app={app} things={things} />}
      {users.length === 0
        ? null
        : <Users app={app} users={users} next={nextCursor === null ? null : nextOf(request, nextCursor)} />}
      {isExact ? null : <p class="hint">{INEXACT_SEARCH}</p>}
    </>,
  );
}

function nextOf(request: PageRequest, cursor: string): string {
  const query = new URLSearchParams(request.query);
  query.set("cursor", cursor);
  return `${request.path}?${query}`;
}

/** The path of the page that shows a record. */
function pathOf(app: AppMode, { kind, id, userId, alias }: FoundThing): string {
  const user = userPath(app, userId);
  switch (kind) {
    case "event":
      return `${appPath(app)}/events/${encodeURIComponent(id)}`;
    case "merge":
      return `${user}/merges/${encodeURIComponent(alias ?? "")}`;
    default:
      return `${user}?found=${encodeURIComponent(id)}#${encodeURIComponent(id)}`;
  }
}

function page(app: AppMode & { name: string }, text: string, content: unknown, status = 200) {
  return {
    title: "Search",
    crumbs: crumbsOf(app, "Search"),
    status,
    content: (
      <>
        <h1>{text === "" ? "Users" : <>Search results for “{text}”</>}</h1>
        {content as never}
      </>
    ),
  };
}

function Users({ app, users, next }: { app: AppMode; users: readonly ListedUser[]; next: string | null }) {
  return (
    <section class="card" aria-labelledby="users">
      <h2 id="users">Matching users</h2>
      <Table
        rows={users}
        columns={[
          { head: "ID", cell: ({ userId }) => <a class="row" href={userPath(app, userId)}>{userId}</a> },
          {
            head: "Kind",
            cell: ({ aliasOf, deletionPending }) => (
              <>
                {aliasOf === null ? "user" : <>alias of {aliasOf}</>}
                {deletionPending ? <span class="tag bad">deletion pending</span> : null}
              </>
            ),
          },
        ]}
      />
      {next === null ? null : (
        <div class="pager">
          <a href={next}>More</a>
        </div>
      )}
    </section>
  );
}

/** The kinds of records in words. */
export const KINDS: Readonly<Record<FoundThing["kind"], string>> = {
  event: "event",
  reservation: "reservation",
  balance: "credit balance",
  subscription: "subscription",
  merge: "merge",
};

function Things({ app, things }: { app: AppMode; things: readonly FoundThing[] }) {
  return (
    <section class="card" aria-labelledby="things">
      <h2 id="things">Other matches</h2>
      <Table
        rows={things}
        columns={[
          { head: "ID", cell: (thing) => <a class="row" href={pathOf(app, thing)}>{thing.id}</a> },
          { head: "Kind", cell: ({ kind }) => KINDS[kind] },
          { head: "User", cell: ({ userId }) => userId },
        ]}
      />
    </section>
  );
}

function NoResults({ app, asked }: { app: AppMode; asked: string }) {
  const other = app.mode === "live" ? "test" : "live";
  const there = `${appPath({ ...app, mode: other })}/search?q=${encodeURIComponent(asked)}`;
  return (
    <section class="card">
      <p>
        <b>No results in {app.mode} mode</b>
      </p>
      <ul>
        <li>
          Users are found by a part of their ID, email or name, and by a Stripe customer. Other IDs match
          exactly.
        </li>
        <li>A user is created by the first subscription, credit or call.</li>
        <li>
          <a href={there}>Search in {other} mode</a>, or in another <a href="/console/apps">app</a>.
        </li>
        {asked.trim() === "" ? null : (
          <li>
            <a href={userPath(app, asked.trim())}>Open the page of this ID</a> to give it a plan or credits.
          </li>
        )}
      </ul>
    </section>
  );
}
