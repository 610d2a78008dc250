// The apps of the service, by workspace, with what each workspace used of its caps this month.

import type { PageAt } from "../parts/page_context.ts";
import { ActsHead, AmountText } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";

interface Workspace {
  readonly workspaceId: string;
  readonly name: string;
  readonly operationCap: number | null;
  readonly operationsUsed: number;
  readonly aiBudgetCents: number | null;
  readonly aiSpentCents: number;
}

interface AppRow {
  readonly appId: string;
  readonly workspaceId: string;
  readonly name: string;
}

/** `/console/apps` */
export const appsPage: PageAt = {
  path: "/console/apps",
  async show({ ask }) {
    const [workspaces, apps] = await Promise.all([
      ask.admin<Workspace[]>("listWorkspaces"),
      ask.admin<AppRow[]>("listApps"),
    ]);
    if (!workspaces.ok || !apps.ok) throw new Error("The lists of workspaces and apps were refused");
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
                There is no app yet. Make one with <code>deno task admin app create --name "My app"</code>.
              </p>
            )
            : null}
          {workspaces.data.map((workspace) => (
            <WorkspaceSheet
              workspace={workspace}
              apps={apps.data.filter(({ workspaceId }) => workspaceId === workspace.workspaceId)}
            />
          ))}
        </>
      ),
    };
  },
};

function WorkspaceSheet({ workspace, apps }: { workspace: Workspace; apps: readonly AppRow[] }) {
  const { name, workspaceId, operationCap, operationsUsed, aiBudgetCents, aiSpentCents } = workspace;
  return (
    <section class="sheet">
      <div class="head">
        <h2>{name}</h2>
        <code class="soft">{workspaceId}</code>
      </div>
      <div class="figures">
        <div class="figure">
          <b>
            <AmountText value={operationsUsed} />
          </b>
          <span>
            operations this month{operationCap === null ? "" : ` of ${operationCap.toLocaleString("en-US")}`}
          </span>
        </div>
        <div class="figure">
          <b>
            <AmountText value={aiSpentCents} unit="cents" />
          </b>
          <span>
            spent on models{aiBudgetCents === null ? "" : ` of $${(aiBudgetCents / 100).toFixed(2)}`}
          </span>
        </div>
      </div>
      <table>
        <thead>
          <tr>
            <th>App</th>
            <th>Id</th>
            <ActsHead />
          </tr>
        </thead>
        <tbody>
          {apps.map(({ appId, name }) => (
            <tr>
              <td>
                <a class="row" href={appPath({ appId, mode: "live" })}>{name}</a>
              </td>
              <td>
                <code>{appId}</code>
              </td>
              <td>
                <a href={appPath({ appId, mode: "test" })}>Test mode</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
