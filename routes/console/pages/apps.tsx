// The apps of the service by workspace, with the usage of each workspace this month.

import type { PageRoute } from "../parts/page_context.ts";
import { Figure } from "../parts/figure.tsx";
import { amountText } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { errorPage } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listApps, listWorkspaces } from "../../contract/admin.ts";

type Workspace = AnswerOf<typeof listWorkspaces>[number];
type App = AnswerOf<typeof listApps>[number];

/** `/console/apps` */
export const appsPage: PageRoute = {
  path: "/console/apps",
  async show({ ask }) {
    const [workspaces, apps] = await Promise.all([
      ask.admin(listWorkspaces, {}),
      ask.admin(listApps, {}),
    ]);
    if (!workspaces.ok) return errorPage(workspaces.error);
    if (!apps.ok) return errorPage(apps.error);
    return {
      title: "Apps",
      content: (
        <>
          <div class="head">
            <h1>Apps</h1>
          </div>
          {apps.data.length === 0
            ? (
              <p class="empty">
                No apps yet. Create one with <code>deno task admin app create --name "My app"</code>.
              </p>
            )
            : null}
          {workspaces.data.map((workspace) => (
            <WorkspaceCard
              workspace={workspace}
              apps={apps.data.filter(({ workspaceId }) => workspaceId === workspace.workspaceId)}
            />
          ))}
        </>
      ),
    };
  },
};

function WorkspaceCard({ workspace, apps }: { workspace: Workspace; apps: readonly App[] }) {
  const { name, workspaceId, store, operationCap, operationsUsed, aiBudgetCents, aiSpentCents } = workspace;
  return (
    <section class="card">
      <div class="head">
        <h2>{name}</h2>
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
            cell: ({ appId, name }) => <a class="row" href={appPath({ appId, mode: "live" })}>{name}</a>,
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
