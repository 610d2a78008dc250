// The whole service: the usage of each workspace, the processes that serve, and the results of the health checks.

import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { dataOf } from "../parts/subject.tsx";
import { AmountText, amountText, shownName, Time } from "../parts/format.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listWorkspaces } from "../../contract/admin.ts";
import { listUnknownKeys } from "../../contract/requests.ts";
import { examine, listStores, type showCluster } from "../../contract/service.ts";

type Workspace = AnswerOf<typeof listWorkspaces>[number];
type Cluster = AnswerOf<typeof showCluster>;
type Store = AnswerOf<typeof listStores>[number];
type Health = AnswerOf<typeof examine>;

type UnknownKey = AnswerOf<typeof listUnknownKeys>["keys"][number];

const CHECKS_PATH = "/console/system/checks";
/** The member of the query that asks for the checks that take long, and no others. */
const LONG = "long";
const LONG_PATH = `${CHECKS_PATH}?${LONG}`;

/** `/console/system` */
const systemPage: PageRoute = {
  path: "/console/system",
  async show({ ask }) {
    const [workspaces, stores, keys] = await Promise.all([
      ask.admin(listWorkspaces, {}),
      ask.admin(listStores, {}).then(dataOf),
      ask.admin(listUnknownKeys, {}),
    ]);
    return {
      title: "System",
      content: (
        <>
          <div class="head">
            <h1>System</h1>
            <a href="/metrics">Metrics</a>
          </div>
          {stores.map(({ cluster }) => cluster === null ? null : <Troubles cluster={cluster} />)}
          <section class="card">
            <h2>Workspaces this month</h2>
            {!workspaces.ok
              ? <p class="empty">{workspaces.error.message}</p>
              : workspaces.data.length === 0
              ? <p class="empty">No workspaces yet. The first app creates one.</p>
              : <Fullest workspaces={workspaces.data} />}
          </section>
          {keys.ok && keys.data.keys.length > 0 ? <UnknownKeys keys={keys.data.keys} /> : null}
          {stores.map((store) => <StoreCard store={store} />)}
          <section
            class="card"
            id="checks"
            hx-get={CHECKS_PATH}
            hx-trigger="load"
            hx-select="#checks"
            hx-swap="outerHTML"
          >
            <h2>Health checks</h2>
            <p class="empty">
              <a href={CHECKS_PATH}>Run checks</a>: clocks, pending work, and the accounts of a sample of
              users.
            </p>
          </section>
        </>
      ),
    };
  },
};

/** `/console/system/checks?long`: a page of its own and a part of the page above. The checks that take long are a part of it. */
const checksPage: PageRoute = {
  path: CHECKS_PATH,
  async show({ ask, query }) {
    const isPart = query.has(LONG);
    const health = await ask.admin(examine, { long: isPart ? "only" : "without" }).then(dataOf);
    return {
      title: "Health checks",
      crumbs: [{ title: "System", href: "/console/system" }, { title: "Health checks", href: null }],
      content: (
        <>
          <h1>Health checks</h1>
          {isPart ? <LongChecks health={health} /> : <Checks health={health} />}
        </>
      ),
    };
  },
};

function UnknownKeys({ keys }: { keys: readonly UnknownKey[] }) {
  return (
    <section class="card" aria-labelledby="unknown-keys">
      <h2 id="unknown-keys">Unknown API keys</h2>
      <Table
        rows={keys}
        columns={[
          { head: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} /> },
          { head: "Key", cell: ({ keyPrefix }) => <code>{keyPrefix}…</code> },
          { head: "Endpoint", cell: ({ method, route }) => <>{method} {route}</> },
          { head: "Requests", kind: "number", cell: ({ count }) => <AmountText value={count} /> },
        ]}
      />
      <p class="hint">
        Requests of the last 7 days with keys that no app has or had. Those of revoked keys are in the request
        log of their app.
      </p>
    </section>
  );
}

const VERDICTS = {
  ok: { text: "OK", kind: "good" },
  warn: { text: "Warning", kind: "warn" },
  fail: { text: "Error", kind: "bad" },
} as const;

function Checks({ health: { verdict, checks } }: { health: Health }) {
  return (
    <section class="card" id="checks">
      <div class="head">
        <h2>Results</h2>
        <span>
          <Verdict of={verdict} /> <a href={CHECKS_PATH}>Run checks again</a>
        </span>
      </div>
      <CheckTable checks={checks} />
      <h3>Catalogs and accounts</h3>
      <div hx-get={LONG_PATH} hx-trigger="load" hx-select="#long-checks" hx-swap="outerHTML">
        <p class="empty">
          <a href={LONG_PATH}>Check all catalogs and the accounts of a sample of users</a>: takes up to
          seconds.
        </p>
      </div>
    </section>
  );
}

/** The checks of all catalogs and of the accounts of a sample of users, loaded after the others. */
function LongChecks({ health: { checks } }: { health: Health }) {
  return (
    <div id="long-checks">
      <CheckTable checks={checks} />
      <p class="hint">
        Each run compares the accounts of another sample of users. <code>deno task reconcile</code>{" "}
        compares those of all users.
      </p>
    </div>
  );
}

function CheckTable({ checks }: Pick<Health, "checks">) {
  return (
    <Table
      rows={checks}
      columns={[
        { head: "Check", cell: ({ name }) => name },
        { head: "Status", cell: ({ verdict }) => <Verdict of={verdict} /> },
        { head: "Result", cell: ({ found }) => found },
        { head: "Advice", cell: ({ advice }) => advice ?? "none" },
      ]}
    />
  );
}

function Verdict({ of }: { of: Health["verdict"] }) {
  return <span class={`tag ${VERDICTS[of].kind}`}>{VERDICTS[of].text}</span>;
}

function Troubles({ cluster: { troubles, cellsWithoutOwner } }: { cluster: Cluster }) {
  if (troubles.length === 0 && cellsWithoutOwner.length === 0) return null;
  return (
    <div class="note bad" role="alert">
      {troubles.map(({ found, advice }) => (
        <p>
          <b>{found}</b> {advice}
        </p>
      ))}
      {cellsWithoutOwner.length === 0
        ? null
        : <p>{cellsWithoutOwner.length} of 64 cells have no owner: their workspaces are unavailable.</p>}
    </div>
  );
}

/** Workspaces that are listed: where there are more, those nearest to a cap. */
const WORKSPACES_SHOWN = 20;

function Fullest({ workspaces }: { workspaces: readonly Workspace[] }) {
  const hasMore = workspaces.length > WORKSPACES_SHOWN;
  const shown = hasMore
    ? workspaces.toSorted((one, other) => fullnessOf(other) - fullnessOf(one)).slice(0, WORKSPACES_SHOWN)
    : workspaces;
  return (
    <>
      {shown.map((workspace) => <Caps workspace={workspace} />)}
      {hasMore
        ? (
          <p class="hint">
            The {WORKSPACES_SHOWN} of {workspaces.length.toLocaleString("en-US")}{" "}
            workspaces that are nearest to a cap. All are under <a href="/console/apps">Apps</a>.
          </p>
        )
        : null}
    </>
  );
}

/** The largest part of a cap that is used. */
function fullnessOf(
  { operationsUsed, operationCap, aiSpentCents, aiBudgetCents, testOperationsUsed, testOperationCap }:
    Workspace,
): number {
  return Math.max(
    partOf(operationsUsed, operationCap),
    partOf(aiSpentCents, aiBudgetCents),
    partOf(testOperationsUsed, testOperationCap),
  );
}

/** The used part of a cap, from 0 to 1. */
function partOf(used: number, cap: number | null): number {
  return cap === null ? 0 : cap === 0 ? (used > 0 ? 1 : 0) : Math.min(used / cap, 1);
}

function Caps({ workspace }: { workspace: Workspace }) {
  return (
    <div class="group">
      <h3>
        {shownName(workspace.name, workspace.workspaceId)} <code class="soft">{workspace.workspaceId}</code>
      </h3>
      <CapBar label="Operations" used={workspace.operationsUsed} cap={workspace.operationCap} />
      <CapBar label="AI spend" used={workspace.aiSpentCents} cap={workspace.aiBudgetCents} unit="cents" />
      <CapBar
        label="Operations in test mode"
        used={workspace.testOperationsUsed}
        cap={workspace.testOperationCap}
      />
    </div>
  );
}

function CapBar({ label, used, cap, unit }: {
  label: string;
  used: number;
  cap: number | null;
  unit?: Unit;
}) {
  const part = partOf(used, cap);
  return (
    <div class="cap">
      <div class="title">
        <span>{label}</span>
        <span class="amount">
          <AmountText value={used} unit={unit} />
          <span class="soft">{cap === null ? " · no cap" : ` of ${amountText(cap, unit)}`}</span>
        </span>
      </div>
      {cap === null ? null : (
        <svg
          class="meter"
          role="img"
          aria-label={`${label}: ${amountText(used, unit)} of ${amountText(cap, unit)}`}
          preserveAspectRatio="none"
        >
          <rect class="left" width="100%" height="100%" />
          <rect class={used >= cap ? "over" : "used"} width={`${part * 100}%`} height="100%" />
        </svg>
      )}
    </div>
  );
}

/** The processes of a database; it has a name where there are several. */
function StoreCard({ store: { store, state, cluster } }: { store: Store }) {
  return (
    <section class="card">
      <h2>{store === null ? "Processes" : `Processes on ${store}`}</h2>
      {cluster === null
        ? (
          <p class="empty">
            This process does not serve this database ({state}): its workspaces are unavailable.
          </p>
        )
        : <Processes cluster={cluster} />}
    </section>
  );
}

function Processes({ cluster }: { cluster: Cluster }) {
  const running = cluster.members.filter(({ hasEnded }) => !hasEnded);
  return (
    <>
      <Table
        rows={running}
        columns={[
          {
            head: "Process",
            cell: ({ term }) => (
              <>{term} {term === cluster.member ? <span class="soft">this process</span> : null}</>
            ),
          },
          {
            head: "Address",
            cell: ({ address }) => address ?? <span class="soft">none: single process</span>,
          },
          { head: "Cells of 64", kind: "number", cell: ({ cells }) => cells.length },
          { head: "Uptime", cell: ({ livedSeconds }) => durationText(livedSeconds) },
          { head: "Status", cell: (member) => <ProcessStatus member={member} cluster={cluster} /> },
        ]}
      />
      <p class="hint">
        Version of workspaces, apps, API keys and catalogs: {cluster.registryVersion}
      </p>
    </>
  );
}

const SILENT_S = 3;

function ProcessStatus({ member, cluster }: { member: Cluster["members"][number]; cluster: Cluster }) {
  const isThis = member.term === cluster.member;
  // The process that answers is running, whatever its row says: alone on the embedded store it sends no heartbeats.
  if (!isThis && member.silentSeconds >= SILENT_S) return <span class="tag bad">not responding</span>;
  if (!isThis && !member.isReached) return <span class="tag bad">unreachable</span>;
  if (member.registryVersion !== cluster.registryVersion) return <span class="tag warn">catching up</span>;
  return <span class="tag good">{member.share === 0 ? "front" : "serving"}</span>;
}

/** A duration in its largest unit. */
function durationText(seconds: number): string {
  for (const [name, length] of [["days", 86_400], ["hours", 3_600], ["minutes", 60]] as const) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}`;
  }
  return `${Math.floor(seconds)} seconds`;
}

export const SYSTEM_PAGES: readonly PageRoute[] = [systemPage, checksPage];
