// The one search box: a user id or its beginning, or any id that Holdfast or the caller gave out.

import { appOf, refusedPage } from "../parts/subject.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { AppMode } from "../parts/ask.ts";
import type { Outcome, PageAt, PageRequest } from "../parts/page_context.ts";

/** What an id that was looked up stands for. */
export interface FoundThing {
  readonly kind: "event" | "reservation" | "balance" | "subscription" | "merge";
  readonly id: string;
  /** The canonical user's. */
  readonly userId: string;
  /** Of a merge: the id that became an alias. */
  readonly alias: string | null;
  /** Of a reservation. */
  readonly status: "held" | "committed" | "released" | "expired" | null;
}

interface ListedUser {
  readonly userId: string;
  readonly aliasOf: string | null;
  readonly deletionPending: boolean;
}

interface UserList {
  readonly users: readonly ListedUser[];
  readonly nextCursor: string | null;
}

const LISTED = "50";

/** `/console/apps/{appId}/{mode}/search?q=`; a "*" at the end lists, even where somebody has the text as an id. */
export const searchPage: PageAt = {
  path: "/console/apps/:appId/:mode/search",
  async show(request): Promise<Outcome> {
    const app = appOf(request);
    const asked = request.query.get("q") ?? "";
    const exact = await search(request, app, asked);
    // An id that was copied from somewhere may bring spaces along, and one may also have some.
    const outcome = exact ?? (asked.trim() === asked ? null : await search(request, app, asked.trim()));
    if (outcome !== null) return outcome;
    return page(app, asked, <Nothing app={app} asked={asked} />, 404);
  },
};

/** Where a search leads; null for nowhere. */
async function search(
  request: PageRequest,
  app: AppMode & { name: string },
  text: string,
): Promise<Outcome | null> {
  const isList = text.endsWith("*");
  const startsWith = isList ? text.slice(0, -1) : text;
  const [listed, found] = await Promise.all([
    request.ask.admin<UserList>("listUsers", {
      appId: app.appId,
      mode: app.mode,
      startsWith,
      limit: LISTED,
      cursor: request.query.get("cursor") ?? undefined,
    }),
    isList || text === "" ? null : request.ask.admin<{ found: FoundThing[] }>("lookUpId", {
      appId: app.appId,
      mode: app.mode,
      id: text,
    }),
  ]);
  if (!listed.ok) return refusedPage(listed.error, "Not searched");
  const { users, nextCursor } = listed.data;
  const things = found?.ok === true ? found.data.found : [];
  const [first] = users;
  if (!isList && first?.userId === text) return { to: userPath(app, text) };
  if (users.length + things.length === 0) return null;
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
    </>,
  );
}

function nextOf(request: PageRequest, cursor: string): string {
  const query = new URLSearchParams(request.query);
  query.set("cursor", cursor);
  return `${request.path}?${query}`;
}

/** The page on which something shows. */
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
    crumbs: [{ title: app.name, href: appPath(app) }, { title: "Search", href: null }],
    status,
    content: (
      <>
        <h1>{text === "" ? "Users" : <>Search for “{text}”</>}</h1>
        {content as never}
      </>
    ),
  };
}

function Users({ app, users, next }: { app: AppMode; users: readonly ListedUser[]; next: string | null }) {
  return (
    <section class="sheet" aria-labelledby="users">
      <h2 id="users">Users whose id begins so</h2>
      <table class="stack">
        <thead>
          <tr>
            <th>Id</th>
            <th>What it is</th>
          </tr>
        </thead>
        <tbody>
          {users.map(({ userId, aliasOf, deletionPending }) => (
            <tr>
              <td data-label="Id">
                <a class="row" href={userPath(app, userId)}>{userId}</a>
              </td>
              <td data-label="What it is">
                {aliasOf === null ? "a user" : <>an alias of {aliasOf}</>}
                {deletionPending ? <span class="tag bad">erasure pending</span> : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {next === null ? null : (
        <div class="pager">
          <a href={next}>More</a>
        </div>
      )}
    </section>
  );
}

const KINDS: Readonly<Record<FoundThing["kind"], string>> = {
  event: "an event",
  reservation: "a reservation",
  balance: "a credit balance",
  subscription: "a subscription",
  merge: "a merge",
};

function Things({ app, things }: { app: AppMode; things: readonly FoundThing[] }) {
  return (
    <section class="sheet" aria-labelledby="things">
      <h2 id="things">What has this id or reference</h2>
      <table class="stack">
        <thead>
          <tr>
            <th>Id</th>
            <th>What it is</th>
            <th>Of</th>
          </tr>
        </thead>
        <tbody>
          {things.map((thing) => (
            <tr>
              <td data-label="Id">
                <a class="row" href={pathOf(app, thing)}>{thing.id}</a>
              </td>
              <td data-label="What it is">{KINDS[thing.kind]}</td>
              <td data-label="Of">{thing.userId}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Nothing({ app, asked }: { app: AppMode; asked: string }) {
  const other = app.mode === "live" ? "test" : "live";
  const there = `${appPath({ ...app, mode: other })}/search?q=${encodeURIComponent(asked)}`;
  return (
    <section class="sheet">
      <p>
        <b>Nobody and nothing has this id in {app.mode} mode.</b>
      </p>
      <ul>
        <li>Ids are exact: capitals count, and the beginning of an id is enough, its middle is not.</li>
        <li>A user appears with the first subscription, credit or call.</li>
        <li>
          <a href={there}>Look in {other} mode</a>, or in another <a href="/console/apps">app</a>.
        </li>
        {asked.trim() === "" ? null : (
          <li>
            <a href={userPath(app, asked.trim())}>Open the page of this id anyway</a>, to give it a plan or
            credits.
          </li>
        )}
      </ul>
    </section>
  );
}
