// The frame of every page: head, navigation, where one is, and the page's own content. What stands in it is escaped by the
// library that writes it; no page puts text into markup by hand.

import type { Child } from "hono/jsx";
import type { AppMode } from "./ask.ts";
import type { Assets } from "./assets.ts";
import { csrfToken, type Session } from "./session.ts";

/** A step of the way to a page. */
export interface Crumb {
  readonly title: string;
  readonly href: string | null;
}

/** What the frame needs to know. */
export interface Frame {
  readonly assets: Assets;
  /** Null on pages for people who are not signed in. */
  readonly session: Session | null;
  /** The app that the page is about; null for the whole service. */
  readonly app: (AppMode & { readonly name: string }) | null;
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  /** The path of the page, for the navigation and for the switch between live and test. */
  readonly path: string;
  /** Whether the page has charts. */
  readonly hasCharts?: boolean;
  /** What was just done, for the page to open with. */
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
        <a class="skip" href="#main">To the content</a>
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
      {app === null || base === null ? null : (
        <div class="where">
          <a href={base}>{app.name}</a>
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
      )}
      {base === null ? null : (
        <form class="search" role="search" action={`${base}/search`} method="get">
          <input
            type="search"
            name="q"
            id="search"
            aria-label="Search a user or an id"
            placeholder="User, reservation, event, balance …"
            autocomplete="off"
            spellcheck={false}
          />
        </form>
      )}
      <nav class="places" aria-label="Places">
        {base === null ? null : (
          <>
            {link(base, "Overview")}
            {link(`${base}/events`, "Events")}
            {link(`${base}/usage`, "Use by day")}
            {link(`${base}/refusals`, "Refusals")}
            {link(`${base}/catalog`, "Catalog")}
            {link(`${base}/keys`, "Keys")}
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

function Crumbs({ crumbs }: { crumbs: readonly Crumb[] }) {
  return (
    <nav class="crumbs" aria-label="Way here">
      <ol>
        {crumbs.map(({ title, href }) => (
          <li>{href === null ? <span aria-current="page">{title}</span> : <a href={href}>{title}</a>}</li>
        ))}
      </ol>
    </nav>
  );
}

/** The address of an app's pages. */
export function appPath({ appId, mode }: AppMode): string {
  return `/console/apps/${encodeURIComponent(appId)}/${mode}`;
}

/** The address of a user's page. */
export function userPath(app: AppMode, userId: string): string {
  return `${appPath(app)}/users/${encodeURIComponent(userId)}`;
}
