// The audit log: who did what, when, and what changed by it.

import { refusedPage } from "../parts/subject.tsx";
import { csvFile, csvQuery, wantsCsv } from "../parts/csv.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { FILE_ROWS, PAGE_ROWS } from "../parts/pager.tsx";
import type { PageAt, PageRequest } from "../parts/page_context.ts";

/** Short values, as the API shows them. */
type ShownValues = Readonly<Record<string, string | number | boolean | null>> | null;

/** An entry as the API shows it. */
interface ShownEntry {
  readonly auditId: string;
  readonly at: string;
  readonly who: string;
  readonly via: "console" | "api";
  readonly what: string;
  readonly appId: string | null;
  readonly mode: "live" | "test" | null;
  readonly userId: string | null;
  readonly before: ShownValues;
  readonly after: ShownValues;
}

interface ShownLog {
  readonly entries: readonly ShownEntry[];
  readonly nextCursor: string | null;
}

interface AppRow {
  readonly appId: string;
  readonly name: string;
}

const FILE_STEP = 200;

/** `/console/audit` */
const auditPage: PageAt = {
  path: "/console/audit",
  async show(request) {
    const { ask, query, path } = request;
    if (wantsCsv(query)) return await fileOf(request);
    const [log, apps] = await Promise.all([
      listOf(request, PAGE_ROWS, query.get("cursor") || undefined),
      ask.admin<AppRow[]>("listApps"),
    ]);
    if (!log.ok) return refusedPage(log.error);
    const { entries, nextCursor } = log.data;
    const names = new Map(apps.ok ? apps.data.map(({ appId, name }) => [appId, name]) : []);
    const isFiltered = Boolean(query.get("app") || query.get("user"));
    return {
      title: "Audit log",
      content: (
        <>
          <div class="head">
            <h1>Audit log</h1>
            <span class="soft">what people changed, and who signed in</span>
          </div>
          <LogFilter query={query} path={path} names={names} isFiltered={isFiltered} />
          <section class="sheet">
            <h2 class="visually-hidden">The entries</h2>
            {entries.length === 0
              ? (
                <p class="empty">
                  {isFiltered
                    ? "Nothing was done to this app or user by a person. Ids are compared exactly; aliases have entries of their own."
                    : "Nothing was done yet. Sign-ins and every change by a person show here."}
                </p>
              )
              : <Entries entries={entries} names={names} />}
            <Older query={query} cursor={nextCursor} />
          </section>
          {entries.length === 0 ? null : (
            <p class="hint">
              Nobody can change an entry. An erasure hides whom it is about.{" "}
              <a href={csvQuery(query)} download>The newest {FILE_ROWS.toLocaleString("en-US")} as CSV</a>
            </p>
          )}
        </>
      ),
    };
  },
};

export const AUDIT_PAGES: readonly PageAt[] = [auditPage];

function listOf({ ask, query }: PageRequest, limit: number, cursor: string | undefined) {
  return ask.admin<ShownLog>("listAudit", {
    appId: query.get("app") || undefined,
    userId: query.get("user") || undefined,
    limit: String(limit),
    cursor,
  });
}

async function fileOf(request: PageRequest) {
  const rows: ShownEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await listOf(request, FILE_STEP, cursor);
    if (!page.ok) return refusedPage(page.error);
    rows.push(...page.data.entries);
    cursor = page.data.nextCursor ?? undefined;
  } while (cursor !== undefined && rows.length < FILE_ROWS);
  const columns = ["auditId", "at", "who", "via", "what", "appId", "mode", "userId"] as const;
  return csvFile(
    "audit",
    [...columns, "before", "after"],
    rows.map((row) => [
      ...columns.map((column) => row[column]),
      ...[row.before, row.after].map((values) => values === null ? null : JSON.stringify(values)),
    ]),
  );
}

function LogFilter({ query, path, names, isFiltered }: {
  query: URLSearchParams;
  path: string;
  names: ReadonlyMap<string, string>;
  isFiltered: boolean;
}) {
  return (
    <Filter path={path} isFiltered={isFiltered}>
      <div class="field">
        <label for="filter-app">App</label>
        <select id="filter-app" name="app">
          <option value="">All apps</option>
          {[...names].map(([appId, name]) => (
            <option value={appId} selected={query.get("app") === appId}>{name}</option>
          ))}
        </select>
      </div>
      <FilterText name="user" label="User" value={query.get("user")} />
    </Filter>
  );
}

function Entries({ entries, names }: {
  entries: readonly ShownEntry[];
  names: ReadonlyMap<string, string>;
}) {
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>When</th>
          <th>Who</th>
          <th>What</th>
          <th>Where</th>
          <th>User</th>
          <th>From and to</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr>
            <td data-label="When">
              <Time at={entry.at} />
            </td>
            <td data-label="Who">
              {entry.who} {entry.via === "api" ? <span class="tag">API</span> : null}
            </td>
            <td data-label="What">
              <What entry={entry} />
            </td>
            <td data-label="Where">
              <Where entry={entry} names={names} />
            </td>
            <td data-label="User">
              <User entry={entry} />
            </td>
            <td data-label="From and to">
              <Changed entry={entry} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Calls in words; one that is not here shows by its name. */
const WHAT: Readonly<Record<string, string>> = {
  aliasCustomer: "merged two users",
  applyCatalog: "applied a catalog",
  cancelSubscription: "ended a subscription",
  changeWebhook: "changed a webhook",
  changeWorkspace: "changed a workspace",
  createApp: "made an app",
  createKey: "made a key",
  createWebhook: "made a webhook",
  createWorkspace: "made a workspace",
  deletePerson: "asked for an erasure",
  deleteWebhook: "removed a webhook",
  exportPerson: "exported a person",
  extendCredits: "extended a balance",
  grantCredits: "granted credits",
  moveHistory: "filed the history of merged users",
  moveTestClock: "moved the test clock",
  optIn: "opted in",
  optOut: "opted out",
  pingWebhook: "pinged a webhook",
  redeliverMessage: "sent a message again",
  release: "released a hold",
  revokeCredits: "revoked credits",
  revokeKey: "revoked a key",
  rotateIdentitySecret: "made a new identity secret",
  rotateWebhookSecret: "made a new webhook secret",
  signIn: "signed in",
  signInFailed: "wrong token",
  signOut: "signed out",
  sweep: "swept what was due",
  upsertSubscription: "wrote a subscription",
};

function What({ entry: { what } }: { entry: ShownEntry }) {
  const words = WHAT[what] ?? what;
  return what === "signInFailed"
    ? <span class="tag bad" title={what}>{words}</span>
    : <span title={what}>{words}</span>;
}

function Where({ entry: { appId, mode }, names }: {
  entry: ShownEntry;
  names: ReadonlyMap<string, string>;
}) {
  if (appId === null) return null;
  return (
    <>
      <a href={appPath({ appId, mode: mode ?? "live" })} title={appId}>{names.get(appId) ?? appId}</a>
      {mode === "test" ? <span class="tag warn">test</span> : null}
    </>
  );
}

const HASH = /^[\w-]{43}$/;

function User({ entry: { appId, mode, userId, before, after } }: { entry: ShownEntry }) {
  if (userId === null) return null;
  if (HASH.test(userId) && before === null && after === null) {
    return <span class="tag" title={userId}>erased</span>;
  }
  if (appId === null || mode === null) return userId;
  return <a class="row" href={userPath({ appId, mode }, userId)}>{userId}</a>;
}

/** What changed: a value that has both sides goes from one to the other. */
function Changed({ entry: { before, after } }: { entry: ShownEntry }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  if (names.length === 0) return null;
  return (
    <ul class="changes">
      {names.map((name) => (
        <li>
          <span class="soft">{name}</span> <Sides was={before?.[name]} is={after?.[name]} />
        </li>
      ))}
    </ul>
  );
}

type ShownValue = NonNullable<ShownValues>[string] | undefined;

function Sides({ was, is }: { was: ShownValue; is: ShownValue }) {
  if (was === undefined || is === undefined) return <Value value={was ?? is} />;
  return (
    <>
      <Value value={was} /> →{" "}
      <b>
        <Value value={is} />
      </b>
    </>
  );
}

function Value({ value }: { value: ShownValue }) {
  if (typeof value === "number") return <AmountText value={value} />;
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  return <>{value ?? "none"}</>;
}

function Older({ query, cursor }: { query: URLSearchParams; cursor: string | null }) {
  const isFirst = !query.get("cursor");
  if (isFirst && cursor === null) return null;
  const to = (next: string | null) => {
    const copy = new URLSearchParams(query);
    if (next === null) copy.delete("cursor");
    else copy.set("cursor", next);
    return `?${copy}`;
  };
  return (
    <nav class="pager" aria-label="Pages">
      {isFirst ? null : <a href={to(null)} rel="prev">Newest</a>}
      {cursor === null ? null : <a href={to(cursor)} rel="next">Older</a>}
    </nav>
  );
}
