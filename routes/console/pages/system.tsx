// The whole service: what each workspace used of its caps, who serves, and what the service finds when it examines itself.

import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { refusedPage } from "../parts/subject.tsx";
import { AmountText, amountText } from "../parts/format.tsx";
import type { PageAt } from "../parts/page_context.ts";

/** A workspace as the admin API lists it. */
interface Workspace {
  readonly workspaceId: string;
  readonly name: string;
  readonly operationCap: number | null;
  readonly testOperationCap: number | null;
  readonly aiBudgetCents: number | null;
  readonly operationsUsed: number;
  readonly testOperationsUsed: number;
  readonly aiSpentCents: number;
}

/** Who serves, as the admin API shows it. */
interface Cluster {
  readonly member: number;
  readonly registryVersion: number;
  readonly members: readonly {
    readonly term: number;
    readonly address: string | null;
    readonly share: number;
    readonly cells: readonly number[];
    readonly registryVersion: number;
    readonly livedSeconds: number;
    readonly silentSeconds: number;
    readonly hasEnded: boolean;
    readonly isReached: boolean;
  }[];
  readonly cellsWithoutOwner: readonly number[];
  readonly troubles: readonly { readonly found: string; readonly advice: string }[];
}

/** An examination, as the admin API shows it. */
interface Health {
  readonly verdict: Verdict;
  readonly checks: readonly {
    readonly name: string;
    readonly verdict: Verdict;
    readonly found: string;
    readonly advice: string | null;
  }[];
}

type Verdict = "ok" | "warn" | "fail";

const FINDINGS = "/console/system/findings";

/** `/console/system` */
const systemPage: PageAt = {
  path: "/console/system",
  async show({ ask }) {
    const [workspaces, cluster] = await Promise.all([
      ask.admin<Workspace[]>("listWorkspaces"),
      ask.admin<Cluster>("showCluster"),
    ]);
    if (!workspaces.ok) return refusedPage(workspaces.error);
    if (!cluster.ok) return refusedPage(cluster.error);
    return {
      title: "System",
      content: (
        <>
          <div class="head">
            <h1>System</h1>
            <a href="/metrics">Metrics</a>
          </div>
          <Troubles cluster={cluster.data} />
          <section class="sheet">
            <h2>Workspaces this month</h2>
            {workspaces.data.length === 0
              ? <p class="empty">There is no workspace yet. The first app makes one.</p>
              : workspaces.data.map((workspace) => <Caps workspace={workspace} />)}
          </section>
          <section class="sheet">
            <h2>Members</h2>
            <Members cluster={cluster.data} />
          </section>
          <section
            class="sheet"
            id="findings"
            hx-get={FINDINGS}
            hx-trigger="load"
            hx-select="#findings"
            hx-swap="outerHTML"
          >
            <h2>What the service finds</h2>
            <p class="empty">
              <a href={FINDINGS}>Let it examine itself</a>: clocks, work that waits, and whether the books of
              a sample of users add up.
            </p>
          </section>
        </>
      ),
    };
  },
};

/** `/console/system/findings`: takes longer than a page, so it is a page of its own, and part of the one above. */
const findingsPage: PageAt = {
  path: FINDINGS,
  async show({ ask }) {
    const health = await ask.admin<Health>("examine");
    if (!health.ok) return refusedPage(health.error);
    return {
      title: "What the service finds",
      crumbs: [{ title: "System", href: "/console/system" }, { title: "Findings", href: null }],
      content: (
        <>
          <h1>What the service finds</h1>
          <Findings health={health.data} />
        </>
      ),
    };
  },
};

const VERDICTS = {
  ok: { text: "well", kind: "good" },
  warn: { text: "look at it", kind: "warn" },
  fail: { text: "wrong", kind: "bad" },
} as const;

function Findings({ health: { verdict, checks } }: { health: Health }) {
  const tag = (of: Verdict) => <span class={`tag ${VERDICTS[of].kind}`}>{VERDICTS[of].text}</span>;
  return (
    <section class="sheet" id="findings">
      <div class="head">
        <h2>What the service finds</h2>
        <span>
          {tag(verdict)} <a href={FINDINGS}>Examine again</a>
        </span>
      </div>
      <table class="stack">
        <thead>
          <tr>
            <th>Check</th>
            <th>Verdict</th>
            <th>Found</th>
            <th>What to do</th>
          </tr>
        </thead>
        <tbody>
          {checks.map((check) => (
            <tr>
              <td data-label="Check">{check.name}</td>
              <td data-label="Verdict">{tag(check.verdict)}</td>
              <td data-label="Found">{check.found}</td>
              <td data-label="What to do">{check.advice ?? "nothing"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        Drift is looked for in a sample of users, another one each time. <code>deno task reconcile</code>{" "}
        proves the books of everybody.
      </p>
    </section>
  );
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
      {cellsWithoutOwner.length === 0 ? null : (
        <p>
          {cellsWithoutOwner.length} of 64 cells have no owner: their workspaces are answered by nobody.
        </p>
      )}
    </div>
  );
}

function Caps({ workspace }: { workspace: Workspace }) {
  return (
    <div class="group">
      <h3>
        {workspace.name} <code class="soft">{workspace.workspaceId}</code>
      </h3>
      <CapBar label="Operations" used={workspace.operationsUsed} cap={workspace.operationCap} />
      <CapBar label="AI spend" used={workspace.aiSpentCents} cap={workspace.aiBudgetCents} unit="cents" />
      <CapBar
        label="Operations of test mode"
        used={workspace.testOperationsUsed}
        cap={workspace.testOperationCap}
      />
    </div>
  );
}

/** What was used of a cap. */
function CapBar(
  { label, used, cap, unit }: { label: string; used: number; cap: number | null; unit?: Unit },
) {
  const amount = (value: number) => unit === undefined ? amountText(value) : amountText(value, unit);
  const part = cap === null ? 0 : cap === 0 ? (used > 0 ? 1 : 0) : Math.min(used / cap, 1);
  return (
    <div class="cap">
      <div class="title">
        <span>{label}</span>
        <span class="amount">
          {unit === undefined ? <AmountText value={used} /> : <AmountText value={used} unit={unit} />}
          <span class="soft">{cap === null ? " · no cap" : ` of ${amount(cap)}`}</span>
        </span>
      </div>
      {cap === null ? null : (
        <svg
          class="meter"
          role="img"
          aria-label={`${label}: ${amount(used)} of ${amount(cap)}`}
          preserveAspectRatio="none"
        >
          <rect class="room" width="100%" height="100%" />
          <rect class={used >= cap ? "over" : "used"} width={`${part * 100}%`} height="100%" />
        </svg>
      )}
    </div>
  );
}

function Members({ cluster }: { cluster: Cluster }) {
  const living = cluster.members.filter(({ hasEnded }) => !hasEnded);
  return (
    <>
      <table class="stack">
        <thead>
          <tr>
            <th>Member</th>
            <th>Address</th>
            <th class="number">Cells of 64</th>
            <th>Serves for</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {living.map((member) => (
            <tr>
              <td data-label="Member">
                {member.term} {member.term === cluster.member ? <span class="soft">this one</span> : null}
              </td>
              <td data-label="Address">
                {member.address ?? <span class="soft">none: it serves alone</span>}
              </td>
              <td data-label="Cells of 64" class="number">{member.cells.length}</td>
              <td data-label="Serves for">{spanOf(member.livedSeconds)}</td>
              <td data-label="State">
                <MemberState member={member} cluster={cluster} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hint">
        Version {cluster.registryVersion} of workspaces, apps, keys and catalogs is in force.
      </p>
    </>
  );
}

const SILENT_S = 3;

function MemberState({ member, cluster }: { member: Cluster["members"][number]; cluster: Cluster }) {
  // The one that answers is not silent, whatever its row says: alone on the embedded store it has no need to beat.
  if (member.term !== cluster.member && member.silentSeconds >= SILENT_S) {
    return <span class="tag bad">silent</span>;
  }
  if (member.term !== cluster.member && !member.isReached) return <span class="tag bad">not reached</span>;
  if (member.registryVersion !== cluster.registryVersion) return <span class="tag warn">catching up</span>;
  return <span class="tag good">{member.share === 0 ? "front" : "serves"}</span>;
}

/** A span of time in its largest unit. */
function spanOf(seconds: number): string {
  for (const [name, length] of [["days", 86_400], ["hours", 3_600], ["minutes", 60]] as const) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}`;
  }
  return `${Math.floor(seconds)} seconds`;
}

export const SYSTEM_PAGES: readonly PageAt[] = [systemPage, findingsPage];
