// One user on one page: where they stand now, plan and history, credits, events, refusals, ids and consent, and what can be
// done to them.

import type { Child } from "hono/jsx";
import { readCatalog } from "./catalog_actions.ts";
import { aboutUser, type UserSubject } from "../parts/subject.tsx";
import { Time } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { mayChange, type PageAt, type PageRequest } from "../parts/page_context.ts";
import type { FoundThing } from "./search.tsx";
import { hasSeen, readStanding, type Standing, StandingPart } from "./user_usage.tsx";
import { ConsentSheet, IdsSheet, LedgerSheet, readConsents } from "./user_records.tsx";
import { EventsSheet, readRecent, RefusalsSheet, SubscriptionsSheet } from "./user_sheets.tsx";

/** Whether somebody has this id: the first of all ids that begin with it is the id itself. */
async function isKnown({ ask, params }: PageRequest, { app }: UserSubject) {
  const userId = params["userId"] ?? "";
  const listed = await ask.admin<
    { users: { userId: string; aliasOf: string | null; deletionPending: boolean }[] }
  >(
    "listUsers",
    { appId: app.appId, mode: app.mode, startsWith: userId, limit: "1" },
  );
  const first = listed.ok ? listed.data.users[0] : undefined;
  return first?.userId === userId ? first : null;
}

/** What a search that led here was for, where it is the user's. */
async function readFound(
  { ask, query }: PageRequest,
  { app, user }: UserSubject,
): Promise<FoundThing | null> {
  const id = query.get("found");
  if (id === null) return null;
  const answer = await ask.admin<{ found: FoundThing[] }>("lookUpId", {
    appId: app.appId,
    mode: app.mode,
    id,
  });
  const thing = answer.ok ? answer.data.found.find((each) => each.id === id) : undefined;
  return thing?.userId === user.userId ? thing : null;
}

const userPage: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId",
  async show(request) {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const { app, user } = subject;
    const [known, found, catalog, standing, recent, consents] = await Promise.all([
      isKnown(request, subject),
      readFound(request, subject),
      readCatalog(request, app),
      readStanding(request, subject),
      readRecent(request, subject),
      readConsents(request, subject),
    ]);
    if (!("groups" in standing)) return standing;
    const asked = request.params["userId"] ?? "";
    return {
      title: user.userId,
      crumbs: [{ title: app.name, href: appPath(app) }, { title: user.userId, href: null }],
      content: (
        <>
          <div class="head">
            <h1>{user.userId}</h1>
            <Tags subject={subject} standing={standing} isPending={known?.deletionPending === true} />
          </div>
          {asked === user.userId ? null : (
            <div class="note">
              <code>{asked}</code> is an alias of this user.
            </div>
          )}
          {known?.deletionPending === true
            ? (
              <div class="note warn">
                An erasure of this person was asked for. Events and refusals are hidden until it is done.
              </div>
            )
            : null}
          {known === null ? <Unknown request={request} subject={subject} /> : null}
          {found === null ? null : <Found found={found} />}
          <Acts request={request} subject={subject} />
          {known === null ? null : (
            <>
              <StandingPart request={request} subject={subject} standing={standing} seen={null} />
              <SubscriptionsSheet subject={subject} catalog={catalog} />
              <EventsSheet
                request={request}
                subject={subject}
                recent={recent}
                consents={consents}
                isErasing={known.deletionPending}
              />
              <RefusalsSheet subject={subject} recent={recent} standing={standing} />
              <LedgerSheet subject={subject} entries={recent.entries} standing={standing} />
              <div class="columns">
                <IdsSheet subject={subject} />
                <ConsentSheet request={request} subject={subject} consents={consents} />
              </div>
            </>
          )}
        </>
      ),
    };
  },
};

function Found({ found: { kind, id, status } }: { found: FoundThing }) {
  const what = {
    event: "event",
    reservation: "reservation",
    balance: "credit balance",
    subscription: "subscription",
    merge: "merge",
  }[kind];
  return (
    <div class="note">
      <code>{id}</code> is a {what} of this user. {status === null
        ? ""
        : status === "held"
        ? "It is open."
        : `It was ${status === "expired" ? "not settled in time and expired" : status}.`}
    </div>
  );
}

function Tags(
  { subject: { user }, standing, isPending }: {
    subject: UserSubject;
    standing: Standing;
    isPending: boolean;
  },
) {
  const { subscription } = standing;
  const endsAt = user.subscription?.endsAt ?? null;
  return (
    <span class="tags">
      {subscription === null
        ? <span class="tag warn">no plan</span>
        : <span class="tag good">{subscription.planName}</span>}
      {endsAt === null ? null : (
        <span class="tag warn">
          ends <Time at={endsAt} />
        </span>
      )}
      {isPending ? <span class="tag bad">erasure pending</span> : null}
    </span>
  );
}

function Unknown({ request, subject: { app, user } }: { request: PageRequest; subject: UserSubject }) {
  const search = `${appPath(app)}/search?q=${encodeURIComponent(user.userId)}*`;
  return (
    <div class="note warn">
      <p>
        <b>Nobody has used this id in {app.mode} mode.</b>{" "}
        Ids are exact, capitals too. A user appears with the first subscription, credit or call.
      </p>
      <p>
        <a href={search}>Look for ids that begin with it</a>
        {mayChange(request.session) ? ", or begin with a plan or credits below." : "."}
      </p>
    </div>
  );
}

/** What can be done to the user, the likely first. */
function Acts(
  { request, subject: { app, user } }: { request: PageRequest; subject: UserSubject },
) {
  const base = userPath(app, user.userId);
  const link = (name: string, text: string): Child => <a class="button" href={`${base}/${name}`}>{text}</a>;
  return (
    <nav class="buttons acts-bar" aria-label="What can be done">
      {link("explain", "Why was this refused?")}
      {mayChange(request.session)
        ? (
          <>
            {link("grant", "Grant credits")}
            {link("plan", "Change plan")}
            {user.subscription === null ? null : link("limits", "Custom limits")}
            {user.subscription === null ? null : link("cancel", "Cancel plan")}
            <details class="menu">
              <summary class="button">More</summary>
              <div class="items">
                <a href={`${base}/merge`}>Merge with another id</a>
                <a href={`${base}/opt-out`}>Opt out</a>
                <a href={`${base}/opt-in`}>Opt in</a>
                <a href={`${base}/export`}>Export everything</a>
                <a href={`${base}/erase`}>Erase</a>
                {app.mode === "test" ? <a href={`${appPath(app)}/clock`}>Move the test clock</a> : null}
              </div>
            </details>
          </>
        )
        : null}
    </nav>
  );
}

/** The part that is asked for again and again; 204 where the browser has it already. */
const standingPart: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId/standing",
  async show(request) {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const standing = await readStanding(request, subject);
    if (!("groups" in standing)) return standing;
    const seen = request.query.get("seen");
    if (hasSeen(standing, seen)) return { title: subject.user.userId, content: null, status: 204 };
    return {
      title: subject.user.userId,
      content: <StandingPart request={request} subject={subject} standing={standing} seen={seen} />,
    };
  },
};

export const userPages: readonly PageAt[] = [userPage, standingPart];
