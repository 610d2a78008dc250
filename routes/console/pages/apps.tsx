// The apps of the service by workspace, a page at a time, with the usage of each workspace this month.

import type { PageRoute } from "../parts/page_context.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { Figure } from "../parts/figure.tsx";
import { amountText, shownName } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { offsetOf, PAGE_ROWS, Pager } from "../parts/pager.tsx";
import { dataOf } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listApps, listWorkspaces } from "../../contract/admin.ts";

type Workspace = AnswerOf<typeof listWorkspaces>[number];
type App = AnswerOf<typeof listApps>[number];

/** An app on the page, or a workspace without apps. */
interface Entry {
  readonly workspace: Workspace;
  readonly app: App | null;
}

/** `/console/apps?q=&offset=`. The filter is shown where there is more than a page. */
export const appsPage: PageRoute = {
  path: "/console/apps",
  async show({ ask, query, path }) {
    const [workspaces, apps] = await Promise.all([
      ask.admin(listWorkspaces, {}).then(dataOf),
      ask.admin(listApps, {}).then(dataOf),
    ]);
    const asked = query.get("q")?.trim() ?? "";
    const all = entriesOf(workspaces, apps);
    const found = asked === "" ? all : all.filter((entry) => isNamed(entry, asked.toLowerCase()));
    const offset = offsetOf(query);
    const shown = found.slice(offset, offset + PAGE_ROWS);
    return {
      title: "Apps",
      content: (
        <>
          <div class="head">
            <h1>Apps</h1>
          </div>
          {all.length <= PAGE_ROWS ? null : (
            <Filter path={path} isFiltered={asked !== ""}>
              <FilterText name="q" label="Name or ID" value={asked} placeholder="of an app or a workspace" />
            </Filter>
          )}
          {all.length === 0
            ? (
              <p class="empty">
                No apps yet. Create one with <code>deno task admin app create --name "My app"</code>.
              </p>
            )
            : shown.length === 0
            ? <p class="empty">No results match this filter.</p>
            : null}
          {[...Map.groupBy(shown, ({ workspace }) => workspace)].map(([workspace, entries]) => (
            <WorkspaceCard
              workspace={workspace}
              apps={entries.flatMap(({ app }) => app ?? [])}
            />
          ))}
          <Pager
            query={query}
            offset={offset}
            rows={offset + shown.length < found.length ? PAGE_ROWS : 0}
            words={["Previous", "Next"]}
          />
        </>
      ),
    };
  },
};

/** Apps in the order of their workspaces. */
function entriesOf(workspaces: readonly Workspace[], apps: readonly App[]): Entry[] {
  const byWorkspace = Map.groupBy(apps, ({ workspaceId }) => workspaceId);
  return workspaces.flatMap((workspace): Entry[] =>
    byWorkspace.get(workspace.workspaceId)?.map((app) => ({ workspace, app })) ?? [{ workspace, app: null }]
  );
}

function isNamed({ workspace, app }: Entry, text: string): boolean {
  return [workspace.name, workspace.workspaceId, app?.name ?? "", app?.appId ?? ""]
    .some((name) => name.toLowerCase().includes(text));
}

function WorkspaceCard({ workspace, apps }: { workspace: Workspace; apps: readonly App[] }) {
  const { name, workspaceId, store, operationCap, operationsUsed, aiBudgetCents, aiSpentCents } = workspace;
  return (
    <section class="card">
      <div class="head">
        <h2>{shownName(name, workspaceId)}</h2>
        <code class="soft">{workspaceId}</code>
        {store === undefined ? null : <span class="soft">on {store}</span>}
      </div>
      <div class="figures">
        <Figure
          value={operationsUsed}
          text={`operations this month${operationCap === null ? "" : ` of ${amountText(operationCap)}`}`}
        />
        <Figure
          value={aiSpentCents}
          unit="cents"
          text={`gateway spend${aiBudgetCents === null ? "" : ` of ${amountText(aiBudgetCents, "cents")}`}`}
        />
      </div>
      <Table
        isWide
        rows={apps}
        columns={[
          {
            head: "App",
            cell: ({ appId, name }) => (
              <a class="row" href={appPath({ appId, mode: "live" })}>{shownName(name, appId)}</a>
            ),
          },
          { head: "ID", cell: ({ appId }) => <code>{appId}</code> },
          {
            head: "Actions",
            hidesHead: true,
            cell: ({ appId }) => <a href={appPath({ appId, mode: "test" })}>Test mode</a>,
          },
        ]}
      />
    </section>
  );
}
