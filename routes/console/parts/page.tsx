// The frame of every page: head, navigation, breadcrumbs and the page's content. The library that renders it escapes every
// text; no page builds markup by hand.

import type { Child } from "hono/jsx";
import type { AppMode } from "./ask.ts";
import type { Assets } from "./assets.ts";
import { csrfToken, type Session } from "./session.ts";

/** A breadcrumb. `href` is null for the page itself. */
export interface Crumb {
  readonly title: string;
  readonly href: string | null;
}

/** What the frame shows. */
export interface Frame {
  readonly assets: Assets;
  /** Null on pages without sign-in. */
  readonly session: Session | null;
  /** The app of the page; null for pages of the whole service. */
  readonly app: (AppMode & { readonly name: string }) | null;
  /** Some apps to switch to. */
  readonly apps?: readonly { readonly appId: string; readonly name: string }[];
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  /** The path of the page, which the navigation marks. */
  readonly path: string;
  /** The note of the action that was just done. */
  readonly note?: string | null;
}

/** A whole page. */
export function Page({ frame, children }: { frame: Frame; children?: Child }) {
  const { assets, session, app, title, crumbs = [], note = null } = frame;
  const isTest = app?.mode === "test";
  return (
    <html lang="en" class={isTest ? "test" : undefined}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta
          name="htmx-config"
          content='{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0}'
        />
        <title>{`${title} · Holdfast`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={assets.styles} />
        {session === null ? null : <script src={assets.htmx} defer></script>}
        {session === null ? null : <script src={assets.script} defer></script>}
      </head>
      <body>
        <a class="skip" href="#main">Skip to content</a>
        {session === null ? null : <Navigation frame={frame} session={session} />}
        <main id="main" tabindex={-1}>
          {crumbs.length === 0 ? null : <Crumbs crumbs={crumbs} />}
          {note === null ? null : <div class="note good" role="status">{note}</div>}
          {children}
        </main>
        {session === null ? null : (
          <footer>
            <span>Times are UTC.</span>
            <button type="button" class="quiet" data-opens="shortcuts" hidden>
              <kbd>?</kbd> shortcuts
            </button>
          </footer>
        )}
        {session === null ? null : <Shortcuts />}
      </body>
    </html>
  );
}

const SHORTCUTS = [
  ["/ or Ctrl K", "Search"],
  ["j, k or arrow keys", "Move through the rows of a list"],
  ["Enter", "Open the row"],
  ["Left, right", "Show the days of a chart that has the focus"],
  ["Esc", "Close a menu, leave a field"],
  ["?", "Show these shortcuts"],
] as const;

function Shortcuts() {
  return (
    <dialog id="shortcuts" aria-labelledby="shortcuts-title">
      <h2 id="shortcuts-title">Keyboard shortcuts</h2>
      <dl class="facts">
        {SHORTCUTS.map(([keys, text]) => (
          <>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <form method="dialog" class="buttons">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

/** A page of an app: its path below the app, and its name. */
type Place = readonly [path: string, name: string];

/** The pages of an app in the navigation, and those of its menu for developers. */
const PLACES: readonly Place[] = [
  ["", "Overview"],
  ["/users", "Users"],
  ["/usage", "Usage"],
  ["/refusals", "Limits hit"],
  ["/events", "Events"],
  ["/catalog", "Catalog"],
];
const DEVELOPERS: readonly Place[] = [
  ["/keys", "API keys"],
  ["/webhooks", "Webhooks"],
  ["/requests", "Request log"],
  ["/stripe", "Stripe"],
];

function Navigation({ frame, session }: { frame: Frame; session: Session }) {
  const { app, path } = frame;
  const isWithin = (href: string) => path.startsWith(`${href}/`);
  const link = (href: string, text: string, isApart = false, hasPages = true) => (
    <a
      href={href}
      class={isApart ? "apart" : undefined}
      aria-current={path === href.replace(/\?.*/, "")
        ? "page"
        : hasPages && isWithin(href)
        ? "true"
        : undefined}
    >
      {text}
    </a>
  );
  const base = app === null ? null : appPath(app);
  const isOfDevelopers = DEVELOPERS.some(([place]) =>
    path === `${base}${place}` || isWithin(`${base}${place}`)
  );
  return (
    <header class="bar">
      <a class="brand" href="/console/apps">Holdfast</a>
      {app === null ? null : <AppSwitch app={app} apps={frame.apps ?? []} />}
      {base === null ? null : <Search base={base} />}
      <nav class="places" aria-label="Main">
        {base === null ? null : (
          <>
            {PLACES.map(([place, text]) => link(base + place, text, false, place !== ""))}
            <details class="menu">
              <summary class={isOfDevelopers ? "current" : undefined}>Developers</summary>
              <div class="items start">
                {DEVELOPERS.map(([place, text]) => link(base + place, text))}
              </div>
            </details>
            <span
              hx-get={`${base}/webhooks/failing`}
              hx-trigger="load"
              hx-select="#failing"
              hx-swap="outerHTML"
            />
          </>
        )}
        {link("/console/apps", "Apps", base !== null, false)}
        {link("/console/system", "System")}
        {link("/console/audit", "Audit log")}
      </nav>
      <form class="out" method="post" action="/console/sign-out">
        <input type="hidden" name="csrf" value={csrfToken(session)} />
        <span class="who">
          {session.operator.name}
          <span class="tag">{session.operator.role}</span>
        </span>
        <button type="submit" class="quiet">Sign out</button>
      </form>
    </header>
  );
}

function AppSwitch({ app, apps }: { app: NonNullable<Frame["app"]>; apps: NonNullable<Frame["apps"]> }) {
  return (
    <div class="where">
      <details class="menu">
        <summary>{app.name}</summary>
        <nav class="items start" aria-label="Apps">
          {apps.map(({ appId, name }) => (
            <a
              href={appPath({ appId, mode: app.mode })}
              aria-current={appId === app.appId ? "true" : undefined}
            >
              {name}
            </a>
          ))}
          <a href="/console/apps">All apps</a>
        </nav>
      </details>
      <nav class="modes" aria-label="Mode">
        {(["live", "test"] as const).map((mode) => (
          <a
            href={appPath({ appId: app.appId, mode })}
            aria-current={mode === app.mode ? "true" : undefined}
            class={mode === "test" ? "mode test" : "mode"}
          >
            {mode === "live" ? "Live" : "Test"}
          </a>
        ))}
      </nav>
    </div>
  );
}

function Search({ base }: { base: string }) {
  return (
    <form class="search" role="search" action={`${base}/search`} method="get">
      <input
        type="search"
        name="q"
        id="search"
        aria-label="Search for a user or an ID"
        placeholder="User, reservation, event, balance …"
        autocomplete="off"
        spellcheck={false}
      />
    </form>
  );
}

function Crumbs({ crumbs }: { crumbs: readonly Crumb[] }) {
  return (
    <nav class="crumbs" aria-label="Breadcrumbs">
      <ol>
        {crumbs.map(({ title, href }) => (
          <li>{href === null ? <span aria-current="page">{title}</span> : <a href={href}>{title}</a>}</li>
        ))}
      </ol>
    </nav>
  );
}

/** The breadcrumbs of a page of an app; a text is the page itself. */
export function crumbsOf(app: AppMode & { readonly name: string }, ...crumbs: (Crumb | string)[]): Crumb[] {
  const own = crumbs.map((crumb) => typeof crumb === "string" ? { title: crumb, href: null } : crumb);
  return [{ title: app.name, href: appPath(app) }, ...own];
}

/** The breadcrumb of the list of users. */
export function usersCrumb(app: AppMode): Crumb {
  return { title: "Users", href: `${appPath(app)}/users` };
}

/** The path of an app's pages. */
export function appPath({ appId, mode }: AppMode): string {
  return `/console/apps/${encodeURIComponent(appId)}/${mode}`;
}

/** The path of a user's page. */
export function userPath(app: AppMode, userId: string): string {
  return `${appPath(app)}/users/${segmentOf(userId)}`;
}

/**
 * The part of a path that has an id of a user. Browsers remove the parts `.` and `..` from an address, escaped ones too: these
 * ids get a `~` in front, and so does an id that begins with one.
 */
export function segmentOf(id: string): string {
  return encodeURIComponent(/^(~.*|\.\.?)$/su.test(id) ? `~${id}` : id);
}

/** Returns the id in a part of a path. */
export function idOf(segment: string): string {
  return segment.startsWith("~") ? segment.slice(1) : segment;
}
