// The members of an account: what each user below used of a limit group, with the most that it may use.

import { Choices } from "../parts/choices.tsx";
import { AmountText } from "../parts/format.tsx";
import { userPath } from "../parts/page.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { CursorPager } from "../parts/pager.tsx";
import { dataOf, loadUser, type ShownUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { type Column, Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listMembers } from "../../contract/accounts.ts";

type Group = ShownUser["counters"][number];
type Member = AnswerOf<typeof listMembers>["members"][number];

/** What a member used of a limit group. */
interface Share {
  readonly group: Group;
  readonly member: Member;
}

/** Limit groups, and members of each, on the page of a user; whole lists have a page of their own. */
const GROUPS_SHOWN = 5;
const SHOWN = "5";
const PAGE_ROWS = "100";

/** The limits that count by member; guards do not. */
function limitsOf({ counters }: Pick<UserSubject["user"], "counters">) {
  return counters.filter(({ window }) => window === undefined);
}

/** Reads the members that used most of each limit group; none where a call fails. */
export async function readShares({ ask }: PageRequest, { app, user }: UserSubject): Promise<Share[]> {
  const { userId } = user;
  const listed = await Promise.all(
    limitsOf(user).slice(0, GROUPS_SHOWN).map(async (group): Promise<Share[]> => {
      const answer = await ask.app(app, listMembers, { userId, groupId: group.groupId, limit: SHOWN });
      return answer.ok ? answer.data.members.map((member) => ({ group, member })) : [];
    }),
  );
  return listed.flat();
}

/** The members that used most of each limit group. */
export function SharesTable({ app, shares }: { app: UserSubject["app"]; shares: readonly Share[] }) {
  return (
    <Table
      rows={shares}
      columns={[{ head: "Limit", cell: ({ group }) => group.label }, ...memberColumns(app)]}
    />
  );
}

function memberColumns(app: UserSubject["app"]): readonly Column<Share>[] {
  return [
    {
      head: "Member",
      cell: ({ member: { userId } }) => <a class="row" href={userPath(app, userId)}>{userId}</a>,
    },
    {
      head: "Used",
      hint: "In the running window, with open holds",
      kind: "number",
      cell: ({ group: { unit }, member: { count } }) => <AmountText value={count} unit={unit} />,
    },
    {
      head: "Member limit",
      kind: "number",
      cell: ({ group: { unit }, member: { quota } }) =>
        quota === null ? <span class="soft">none</span> : <AmountText value={quota} unit={unit} />,
    },
    {
      head: "Cost",
      kind: "number",
      cell: ({ member: { costCents } }) => <AmountText value={costCents} unit="cents" />,
    },
  ];
}

/** `/console/apps/{appId}/{mode}/users/{id}/members`, of the limit group in the query or of the first one */
export const membersPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/members",
  async show(request) {
    const subject = await loadUser(request);
    const { app, user: { userId } } = subject;
    const counters = limitsOf(subject.user);
    const asked = request.query.get("group");
    const group = asked === null ? counters[0] : counters.find(({ groupId }) => groupId === asked);
    const cursor = request.query.get("cursor") ?? undefined;
    const listed = group === undefined
      ? null
      : await request.ask.app(app, listMembers, { userId, groupId: group.groupId, limit: PAGE_ROWS, cursor })
        .then(dataOf);
    const title = `Members of ${userId}`;
    return {
      title,
      crumbs: [...userLocation(subject).crumbs, { title: "Members", href: null }],
      content: (
        <>
          <h1>{title}</h1>
          <Choices
            label="Limits"
            path={request.path}
            name="group"
            options={counters.map(({ groupId, label }) => ({ value: groupId, text: label }))}
            chosen={group?.groupId}
          />
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {group === undefined || listed === null
              ? (
                <p class="empty">
                  {counters.length === 0
                    ? "This user has no plan with limits. Give it one, or look at the users above."
                    : "The plan in force has no such limit."}
                </p>
              )
              : listed.members.length === 0
              ? <p class="empty">No user below used this limit in the running window.</p>
              : (
                <Table
                  rows={listed.members.map((member) => ({ group, member }))}
                  columns={memberColumns(app)}
                />
              )}
            <CursorPager
              query={request.query}
              cursor={listed?.cursor ?? null}
              first="First page"
              next="More"
            />
          </section>
        </>
      ),
    };
  },
};
