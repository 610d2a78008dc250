// The audit log: changes and sign-ins of people.

import { dataOf } from "../parts/subject.tsx";
import { csvFile, wantsCsv } from "../parts/csv.ts";
import { Filter, FilterSelect, FilterText } from "../parts/filter.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { CsvLink, CursorPager, FILE_ROWS, PAGE_ROWS } from "../parts/pager.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listApps } from "../../contract/admin.ts";
import { listAudit } from "../../contract/service.ts";

type ShownEntry = AnswerOf<typeof listAudit>["entries"][number];
type ShownValues = ShownEntry["before"];

const FILE_STEP = 200;
/** The most apps in a menu; where there are more, the filter is an ID. */
const CHOICES_MAX = 200;

/** `/console/audit` */
const auditPage: PageRoute = {
  path: "/console/audit",
  async show(request) {
    const { ask, query, path } = request;
    if (wantsCsv(query)) return await fileOf(request);
    const [{ entries, nextCursor }, apps] = await Promise.all([
      listOf(request, PAGE_ROWS, query.get("cursor") || undefined).then(dataOf),
      ask.admin(listApps, {}),
    ]);
    const names = new Map(apps.ok ? apps.data.map(({ appId, name }) => [appId, name]) : []);
    const isFiltered = Boolean(query.get("app") || query.get("user"));
    return {
      title: "Audit log",
      content: (
        <>
          <div class="head">
            <h1>Audit log</h1>
            <span class="soft">changes and sign-ins of people</span>
          </div>
          <LogFilter query={query} path={path} names={names} isFiltered={isFiltered} />
          <section class="card">
            <h2 class="visually-hidden">Entries</h2>
            {entries.length === 0
              ? (
                <p class="empty">
                  {isFiltered
                    ? "No results match these filters. IDs are matched exactly; an alias has entries of its own."
                    : "No entries yet. Sign-ins and changes by people are listed here."}
                </p>
              )
              : <Entries entries={entries} names={names} />}
            <CursorPager query={query} cursor={nextCursor} />
          </section>
          {entries.length === 0 ? null : (
            <p class="hint">
              Entries cannot be changed. Deleting a user's data hides the user. <CsvLink query={query} />
            </p>
          )}
        </>
      ),
    };
  },
};

export const AUDIT_PAGES: readonly PageRoute[] = [auditPage];

function listOf({ ask, query }: PageRequest, limit: number, cursor: string | undefined) {
  return ask.admin(listAudit, {
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
    const page = await listOf(request, FILE_STEP, cursor).then(dataOf);
    rows.push(...page.entries);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined && rows.length < FILE_ROWS);
  const text = (values: ShownValues) => values === null ? null : JSON.stringify(values);
  return csvFile(
    "audit",
    ["auditId", "at", "who", "via", "what", "appId", "mode", "userId", "before", "after"],
    rows.map((row) => ({ ...row, before: text(row.before), after: text(row.after) })),
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
      {names.size > CHOICES_MAX
        ? <FilterText name="app" label="App" value={query.get("app")} placeholder="app_…" />
        : (
          <FilterSelect
            name="app"
            label="App"
            none="All apps"
            options={[...names.keys()]}
            value={query.get("app") || undefined}
            textOf={(appId) => names.get(appId) ?? appId}
          />
        )}
      <FilterText name="user" label="User" value={query.get("user")} />
    </Filter>
  );
}

function Entries({ entries, names }: {
  entries: readonly ShownEntry[];
  names: ReadonlyMap<string, string>;
}) {
  return (
    <Table
      rows={entries}
      columns={[
        { head: "Time", cell: ({ at }) => <Time at={at} /> },
        {
          head: "Person",
          cell: ({ who, via }) => <>{who} {via === "api" ? <span class="tag">API</span> : null}</>,
        },
        { head: "Action", cell: (entry) => <ActionName entry={entry} /> },
        { head: "App", cell: (entry) => <App entry={entry} names={names} /> },
        { head: "User", cell: (entry) => <User entry={entry} /> },
        { head: "Changes", cell: (entry) => <Changes entry={entry} /> },
      ]}
    />
  );
}

/** The actions by the ids of their calls; an action without a text is shown by its id. */
const ACTION_NAMES: Readonly<Record<string, string>> = {
  aliasCustomer: "Merged users",
  applyCatalog: "Applied catalog",
  cancelSubscription: "Canceled subscription",
  unscheduleSubscription: "Dropped scheduled change of plan",
  changeWebhook: "Changed webhook",
  changeWorkspace: "Changed workspace",
  createApp: "Created app",
  createKey: "Created API key",
  createReader: "Created reader",
  createWebhook: "Created webhook",
  createWorkspace: "Created workspace",
  deleteStripe: "Disconnected Stripe",
  deletePerson: "Deleted user data",
  deleteWebhook: "Removed webhook",
  dropCatalog: "Dropped catalog of test mode",
  exportPerson: "Exported user data",
  extendCredits: "Extended credits",
  grantCredits: "Granted credits",
  moveHistory: "Moved history of merged users",
  moveTestClock: "Moved test clock",
  optIn: "Opted in",
  optOut: "Opted out",
  pingWebhook: "Pinged webhook",
  promoteCatalog: "Promoted catalog of test mode",
  redeliverMessage: "Sent webhook message again",
  release: "Released hold",
  revokeCredits: "Revoked credits",
  revokeKey: "Revoked API key",
  rotateIdentitySecret: "Rotated identity secret",
  rotateWebhookSecret: "Rotated webhook secret",
  retryUnhandledStripe: "Retried Stripe message",
  setStripe: "Set Stripe secret",
  signIn: "Signed in",
  signInFailed: "Failed sign-in",
  signOut: "Signed out",
  sweep: "Settled what was due",
  upsertSubscription: "Updated subscription",
};

function ActionName({ entry: { what } }: { entry: ShownEntry }) {
  const name = ACTION_NAMES[what] ?? what;
  return what === "signInFailed"
    ? <span class="tag bad" title={what}>{name}</span>
    : <span title={what}>{name}</span>;
}

function App({ entry: { appId, mode }, names }: {
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
    return <span class="tag" title={userId}>deleted</span>;
  }
  if (appId === null || mode === null) return userId;
  return <a class="row" href={userPath({ appId, mode }, userId)}>{userId}</a>;
}

/** The values before and after. */
function Changes({ entry: { before, after } }: { entry: ShownEntry }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  if (names.length === 0) return null;
  return (
    <ul class="changes">
      {names.map((name) => (
        <li>
          <span class="soft">{name}</span> <Change before={before?.[name]} after={after?.[name]} />
        </li>
      ))}
    </ul>
  );
}

type ShownValue = NonNullable<ShownValues>[string] | undefined;

function Change({ before, after }: { before: ShownValue; after: ShownValue }) {
  if (before === undefined || after === undefined) return <Value value={before ?? after} />;
  return (
    <>
      <Value value={before} /> →{" "}
      <b>
        <Value value={after} />
      </b>
    </>
  );
}

function Value({ value }: { value: ShownValue }) {
  if (typeof value === "number") return <AmountText value={value} />;
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  return <>{value ?? "none"}</>;
}
