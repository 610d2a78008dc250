// The runs of a user: the tasks of agents, with what each used of its limits.

import { StatusChoices } from "../parts/choices.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { segmentOf, userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest, type PageRoute } from "../parts/page_context.ts";
import { CursorPager } from "../parts/pager.tsx";
import { dataOf, loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listRuns } from "../../contract/runs.ts";

type Runs = AnswerOf<typeof listRuns>["runs"];

/** Runs on the page of a user; the whole list has a page of its own. */
const SHOWN = "5";
const PAGE_ROWS = "50";
const STATUSES = ["active", "ended"] as const;

/** Reads the newest runs; none where the call fails. */
export async function readRuns({ ask }: PageRequest, { app, user }: UserSubject): Promise<Runs> {
  const listed = await ask.app(app, listRuns, { userId: user.userId, limit: SHOWN });
  return listed.ok ? listed.data.runs : [];
}

/** The newest runs; nothing for a user without any. */
export function RunsCard(
  { request, subject, runs }: { request: PageRequest; subject: UserSubject; runs: Runs },
) {
  if (runs.length === 0) return null;
  return (
    <section class="card" aria-labelledby="runs">
      <div class="head">
        <h2 id="runs">Runs</h2>
        <a href={`${userPath(subject.app, subject.user.userId)}/runs`}>All runs</a>
      </div>
      <RunsTable request={request} subject={subject} runs={runs} />
    </section>
  );
}

function RunsTable(
  { request, subject: { app, user }, runs }: { request: PageRequest; subject: UserSubject; runs: Runs },
) {
  return (
    <Table
      rows={runs}
      columns={[
        { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          head: "Run",
          cell: ({ runId, name, parentRunId }) => (
            <div>
              {name === null ? null : <b class="sub">{name}</b>}
              <code>{runId}</code>
              {parentRunId === null ? null : <span class="soft sub">within {parentRunId}</span>}
            </div>
          ),
        },
        {
          head: "Status",
          cell: ({ status }) => <span class={status === "active" ? "tag good" : "tag"}>{status}</span>,
        },
        { head: "Used", hint: "With open holds", cell: ({ limits }) => <RunLimits limits={limits} /> },
        { head: "Ends", cell: ({ endedAt, expiresAt }) => <Time at={endedAt ?? expiresAt} /> },
        { head: "Reason", cell: ({ reason }) => reason ?? "" },
        mayChange(request.session)
          ? {
            head: "Actions",
            kind: "actions",
            cell: ({ runId, status }) =>
              status === "ended"
                ? <span class="soft">none</span>
                : (
                  <a class="row" href={`${userPath(app, user.userId)}/runs/${segmentOf(runId)}/end`}>
                    End run
                  </a>
                ),
          }
          : null,
      ]}
    />
  );
}

function RunLimits({ limits }: Pick<Runs[number], "limits">) {
  return (
    <ul class="plain">
      {limits.map(({ unit, event, quota, count }) => (
        <li>
          <AmountText value={count} unit={unit} /> of <AmountText value={quota} unit={unit} />
          {event === "*" ? "" : ` for ${event}`}
        </li>
      ))}
    </ul>
  );
}

/** `/console/apps/{appId}/{mode}/users/{id}/runs`, of the status in the query or of both */
export const runsPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/runs",
  async show(request) {
    const subject = await loadUser(request);
    const { app, user: { userId } } = subject;
    const status = STATUSES.find((each) => each === request.query.get("status"));
    const cursor = request.query.get("cursor") ?? undefined;
    const { runs, cursor: next } = await request.ask.app(app, listRuns, {
      userId,
      status,
      limit: PAGE_ROWS,
      cursor,
    }).then(dataOf);
    const title = `Runs of ${userId}`;
    return {
      title,
      crumbs: [...userLocation(subject).crumbs, { title: "Runs", href: null }],
      content: (
        <>
          <h1>{title}</h1>
          <StatusChoices label="Runs by status" path={request.path} statuses={STATUSES} chosen={status} />
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {runs.length === 0
              ? <p class="empty">No {status ?? ""} runs. Ended runs are kept for 30 days.</p>
              : <RunsTable request={request} subject={subject} runs={runs} />}
            <CursorPager query={request.query} cursor={next} />
          </section>
        </>
      ),
    };
  },
};
