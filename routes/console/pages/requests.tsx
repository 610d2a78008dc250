// The request log: failed requests of an app. Alike requests within an hour are one row.

import { appOf, dataOf } from "../parts/subject.tsx";
import type { AppMode } from "../parts/ask.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { appPath, crumbsOf, userPath } from "../parts/page.tsx";
import { CursorPager, PAGE_ROWS } from "../parts/pager.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listRequests } from "../../contract/requests.ts";

type ShownRequest = AnswerOf<typeof listRequests>["requests"][number];

/** `/console/apps/{appId}/{mode}/requests?status=&code=&path=&requestId=` */
export const requestsPage: PageRoute = {
  path: "/console/apps/:appId/:mode/requests",
  async show({ ask, query, path, ...request }) {
    const app = appOf({ ask, query, path, ...request });
    const asked = (name: string) => query.get(name)?.trim() || undefined;
    const filter = {
      status: asked("status"),
      code: asked("code"),
      path: asked("path"),
      requestId: asked("requestId"),
    };
    const { requests, cursor } = await ask.admin(listRequests, {
      appId: app.appId,
      mode: app.mode,
      ...filter,
      limit: String(PAGE_ROWS),
      cursor: query.get("cursor") || undefined,
    }).then(dataOf);
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    return {
      title: "Request log",
      crumbs: crumbsOf(app, "Request log"),
      content: (
        <>
          <div class="head">
            <h1>Request log</h1>
            <span class="soft">requests that failed in the last 7 days</span>
          </div>
          <Filter path={path} isFiltered={isFiltered}>
            <FilterText name="status" label="Status" value={filter.status} placeholder="400" />
            <FilterText name="code" label="Code" value={filter.code} />
            <FilterText name="path" label="Path contains" value={filter.path} />
            <FilterText name="requestId" label="Request ID" value={filter.requestId} />
          </Filter>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {requests.length > 0 ? <Requests app={app} requests={requests} /> : (
              <p class="empty">
                {isFiltered
                  ? "No results match these filters."
                  : `No failed requests in ${app.mode} mode in the last 7 days.`}
              </p>
            )}
            <CursorPager query={query} cursor={cursor} next="Older" />
          </section>
          <p class="hint">
            Similar requests of a key within an hour are one row, or within a day where they were above a
            limit. A row shows the newest of them. Failed calls of a batch are listed under the path of the
            batch. Users who hit a limit are under <a href={`${appPath(app)}/refusals`}>Limits hit</a>.
          </p>
        </>
      ),
    };
  },
};

function Requests({ app, requests }: { app: AppMode; requests: readonly ShownRequest[] }) {
  return (
    <Table
      rows={requests}
      columns={[
        { head: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} /> },
        { head: "Status", cell: ({ status, code }) => <>{status} {code}</> },
        { head: "Request", cell: (row) => <Request row={row} /> },
        {
          head: "Key",
          cell: ({ keyPrefix, keyId }) => <code class="whole" title={keyId}>{keyPrefix}…</code>,
        },
        {
          head: "User",
          cell: ({ userId }) =>
            userId === null ? <span class="soft">none</span> : <a href={userPath(app, userId)}>{userId}</a>,
        },
        { head: "Requests", kind: "number", cell: ({ count }) => <AmountText value={count} /> },
      ]}
    />
  );
}

function Request({ row: { method, path, message, body, requestIds, firstAt } }: { row: ShownRequest }) {
  return (
    <details>
      <summary>
        {method} {path}
        {message === null ? null : <span class="soft">{` ${message}`}</span>}
      </summary>
      {body === null ? null : <pre>{body}</pre>}
      <p>
        Request IDs, newest first: {requestIds.map((id, place) => (
          <>
            {place === 0 ? "" : ", "}
            <code>{id}</code>
          </>
        ))}
      </p>
      <p class="soft">
        First seen <Time at={firstAt} />
      </p>
    </details>
  );
}
