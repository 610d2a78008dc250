// The place of a user in the tree: its path, and the users directly below it, page by page.

import { AmountText } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { CursorPager } from "../parts/pager.tsx";
import { dataOf, loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import { levelOf, LevelTag } from "../parts/limit_bar.tsx";
import { readShares, SharesTable } from "./members.tsx";
import type { CurrentUsage } from "./user_usage.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listChildren } from "../../contract/accounts.ts";

type Children = AnswerOf<typeof listChildren>;

/** Children on the page of a user; the whole list has a page of its own. */
const SHOWN = "10";
const PAGE_ROWS = "100";

/** The users directly below a user, and what users below used. */
interface Below extends Children {
  readonly shares: Awaited<ReturnType<typeof readShares>>;
}

/** Reads the first users directly below, and the members that used most; none where a call fails. */
export async function readBelow(request: PageRequest, subject: UserSubject): Promise<Below> {
  const { app, user: { userId } } = subject;
  const listed = await request.ask.app(app, listChildren, { userId, limit: SHOWN });
  const below = listed.ok ? listed.data : { children: [], cursor: null };
  return { ...below, shares: below.children.length === 0 ? [] : await readShares(request, subject) };
}

/** The users above and below; nothing for a user without a parent and without children. */
export function AccountCard(
  { subject: { app, user }, below, levels }: {
    subject: UserSubject;
    below: Below;
    levels: CurrentUsage["levels"];
  },
) {
  const { path = [] } = user;
  const { children, cursor, shares } = below;
  if (path.length === 0 && children.length === 0) return null;
  return (
    <section class="card" aria-labelledby="account">
      <div class="head">
        <h2 id="account">Account</h2>
        {children.length === 0 ? null : (
          <span class="choices">
            <a href={`${appPath(app)}/refusals?by=${encodeURIComponent(user.userId)}`}>
              Refusals of users below
            </a>
            <a href={`${userPath(app, user.userId)}/members`}>Members</a>
            {cursor === null ? null : <a href={`${userPath(app, user.userId)}/children`}>All users below</a>}
          </span>
        )}
      </div>
      {path.length === 0 ? null : (
        <p>
          Calls count here and at every user above: {path.map((userId, place) => (
            <>
              {place === 0 ? "" : " › "}
              {place === 0 ? <b>{userId}</b> : <a href={userPath(app, userId)}>{userId}</a>}
            </>
          ))}
        </p>
      )}
      <LevelsTable app={app} levels={levels} />
      {children.length === 0
        ? <p class="empty">No users below</p>
        : <ChildrenTable app={app} rows={children} />}
      {shares.length === 0 ? null : (
        <>
          <h3>Used most by users below</h3>
          <SharesTable app={app} shares={shares} />
        </>
      )}
    </section>
  );
}

/** What is used of each limit of the users above; nothing where they have none. */
function LevelsTable({ app, levels }: { app: UserSubject["app"]; levels: CurrentUsage["levels"] }) {
  const rows = levels.flatMap(({ userId, groups }) => groups.map((group) => ({ userId, group })));
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Limits of users above</h3>
      <Table
        rows={rows}
        columns={[
          { head: "User", cell: ({ userId }) => <a href={userPath(app, userId)}>{userId}</a> },
          { head: "Limit", cell: ({ group }) => <span title={group.groupId}>{group.label}</span> },
          {
            head: "Used",
            hint: "With open holds",
            kind: "number",
            cell: ({ group: { current, unit } }) => <AmountText value={current} unit={unit} />,
          },
          {
            head: "Quota",
            kind: "number",
            cell: ({ group }) => (
              <span data-level={levelOf(group) ?? undefined}>
                <AmountText value={group.quota} unit={group.unit} /> <LevelTag group={group} />
              </span>
            ),
          },
        ]}
      />
    </>
  );
}

function ChildrenTable({ app, rows }: { app: UserSubject["app"]; rows: Children["children"] }) {
  return (
    <Table
      rows={rows}
      columns={[
        {
          head: "User below",
          cell: ({ userId }) => <a class="row" href={userPath(app, userId)}>{userId}</a>,
        },
        { head: "Users below it", kind: "number", cell: ({ children }) => <AmountText value={children} /> },
      ]}
    />
  );
}

/** `/console/apps/{appId}/{mode}/users/{id}/children` */
export const childrenPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/children",
  async show(request) {
    const subject = await loadUser(request);
    const { app, user: { userId } } = subject;
    const cursor = request.query.get("cursor") ?? undefined;
    const { children, cursor: next } = await request.ask.app(app, listChildren, {
      userId,
      limit: PAGE_ROWS,
      cursor,
    }).then(dataOf);
    const title = `Users below ${userId}`;
    return {
      title,
      crumbs: [...userLocation(subject).crumbs, { title: "Users below", href: null }],
      content: (
        <>
          <h1>{title}</h1>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {children.length === 0
              ? <p class="empty">No users below</p>
              : <ChildrenTable app={app} rows={children} />}
            <CursorPager query={request.query} cursor={next} first="First page" next="More" />
          </section>
        </>
      ),
    };
  },
};
