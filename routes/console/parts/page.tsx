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
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  /** The path of the page, which the navigation marks. */
  readonly path: string;
  /** Whether the page has charts. */
  readonly hasCharts?: boolean;
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
        {frame.hasCharts === true ? <script src={assets.charts} defer></script> : null}
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
            <span>
              <kbd>/</kbd> search
            </span>
          </footer>
        )}
      </body>
    </html>
  );
}

function Navigation({ frame, session }: { frame: Frame; session: Session }) {
  const { app, path } = frame;
  const link = (href: string, text: string, isApart = false) => (
    <a href={href} class={isApart ? "apart" : undefined} aria-current={path === href ? "page" : undefined}>
      {text}
    </a>
  );
  const base = app === null ? null : appPath(app);
  return (
    <header class="bar">
      <a class="brand" href="/console/apps">Holdfast</a>
      {app === null ? null : <AppSwitch app={app} />}
      {base === null ? null : <Search base={base} />}
      <nav class="places" aria-label="Main">
        {base === null ? null : (
          <>
            {link(base, "Overview")}
            {link(`${base}/users`, "Users")}
            {link(`${base}/events`, "Events")}
            {link(`${base}/usage`, "Usage")}
            {link(`${base}/refusals`, "Refusals")}
            {link(`${base}/catalog`, "Catalog")}
            {link(`${base}/keys`, "API keys")}
            {link(`${base}/webhooks`, "Webhooks")}
            {link(`${base}/stripe`, "Stripe")}
          </>
        )}
        {link("/console/apps", "Apps", base !== null)}
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

function AppSwitch({ app }: { app: NonNullable<Frame["app"]> }) {
  return (
    <div class="where">
      <a href={appPath(app)}>{app.name}</a>
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
