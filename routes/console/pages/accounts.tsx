// The place of a user in the tree: its path, and the users directly below it, page by page.

import { AmountText } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { errorPage, loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listChildren } from "../../contract/accounts.ts";

type Children = AnswerOf<typeof listChildren>;

/** Children on the page of a user; the whole list has a page of its own. */
const SHOWN = "10";
const PAGE_ROWS = "100";

/** Reads the first users directly below; none where the call fails. */
export async function readChildren({ ask }: PageRequest, { app, user }: UserSubject): Promise<Children> {
  const listed = await ask.app(app, listChildren, { userId: user.userId, limit: SHOWN });
  return listed.ok ? listed.data : { children: [], cursor: null };
}

/** The users above and below; nothing for a user without a parent and without children. */
export function AccountCard(
  { subject: { app, user }, below }: { subject: UserSubject; below: Children },
) {
  const { path = [] } = user;
  const { children, cursor } = below;
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
      {children.length === 0
        ? <p class="empty">No users below</p>
        : <ChildrenTable app={app} rows={children} />}
    </section>
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
    if (!("user" in subject)) return subject;
    const { app, user: { userId } } = subject;
    const cursor = request.query.get("after") ?? undefined;
    const listed = await request.ask.app(app, listChildren, { userId, limit: PAGE_ROWS, cursor });
    if (!listed.ok) return errorPage(listed.error);
    const { children, cursor: next } = listed.data;
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
            {next === null ? null : (
              <nav class="pager" aria-label="Pages">
                <a href={`?after=${encodeURIComponent(next)}`} rel="next">More</a>
              </nav>
            )}
          </section>
        </>
      ),
    };
  },
};
