// The page of a user: limits, credits and holds now, plan and history, events, refusals, ledger, IDs and consent, with
// links to the actions.

import type { Child } from "hono/jsx";
import { AccountCard, readBelow } from "./accounts.tsx";
import { readCatalog } from "../parts/catalog.ts";
import { hasParent, loadUser, type UserSubject } from "../parts/subject.tsx";
import { Time } from "../parts/format.tsx";
import { appPath, crumbsOf, userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest, type PageRoute } from "../parts/page_context.ts";
import { type FoundThing, KINDS } from "./search.tsx";
import { type CurrentUsage, CurrentUsageCards, isUnchanged, readCurrentUsage } from "./user_usage.tsx";
import { readRuns, RunsCard } from "./runs.tsx";
import { ConsentCard, IdsCard, LedgerCard, readConsents } from "./user_records.tsx";
import { readUserKeys, UserKeysCard } from "./user_keys_actions.tsx";
import { readTopUps, TopUpsCard } from "./top_ups.tsx";
import { FeaturesCard } from "./features.tsx";
import { EventsCard, readRecent, RefusalsCard, SubscriptionsCard } from "./user_activity.tsx";
import { listUsers, lookUpId } from "../../contract/admin_users.ts";

/** Reads the entry of an ID in the list of users; null for an unknown ID. An ID is the first of those that begin with it. */
async function readKnown({ ask, params }: PageRequest, { app }: UserSubject) {
  const userId = params["userId"] ?? "";
  const { appId, mode } = app;
  const listed = await ask.admin(listUsers, { appId, mode, startsWith: userId, limit: "1" });
  const first = listed.ok ? listed.data.users[0] : undefined;
  return first?.userId === userId ? first : null;
}

/** Reads the record that a search was for; null where it is not of this user. */
async function readFound(
  { ask, query }: PageRequest,
  { app, user }: UserSubject,
): Promise<FoundThing | null> {
  const id = query.get("found");
  if (id === null) return null;
  const answer = await ask.admin(lookUpId, { appId: app.appId, mode: app.mode, id });
  const thing = answer.ok ? answer.data.found.find((each) => each.id === id) : undefined;
  return thing?.userId === user.userId ? thing : null;
}

const userPage: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId",
  async show(request) {
    const subject = await loadUser(request);
    if (!("user" in subject)) return subject;
    const { app, user } = subject;
    const [known, found, catalog, usage, recent, consents, keys, below, runs, topUps] = await Promise.all([
      readKnown(request, subject),
      readFound(request, subject),
      readCatalog(request, app),
      readCurrentUsage(request, subject),
      readRecent(request, subject),
      readConsents(request, subject),
      readUserKeys(request, subject),
      readBelow(request, subject),
      readRuns(request, subject),
      readTopUps(request, subject),
    ]);
    if (!("groups" in usage)) return usage;
    const isDeleting = known?.deletionPending === true;
    return {
      title: user.userId,
      crumbs: crumbsOf(app, user.userId),
      content: (
        <>
          <div class="head">
            <h1>{user.userId}</h1>
            <Tags subject={subject} usage={usage} isDeleting={isDeleting} />
          </div>
          <AliasNote asked={request.params["userId"] ?? ""} userId={user.userId} />
          {isDeleting
            ? (
              <div class="note warn">
                The data of this user is being deleted. Events and refusals are hidden.
              </div>
            )
            : null}
          {known === null ? <UnknownUser request={request} subject={subject} /> : null}
          {found === null ? null : <Found found={found} />}
          <UserActions request={request} subject={subject} />
          {known === null ? null : (
            <>
              <AccountCard subject={subject} below={below} />
              <CurrentUsageCards request={request} subject={subject} usage={usage} seen={null} />
              <SubscriptionsCard subject={subject} catalog={catalog} />
              <FeaturesCard subject={subject} />
              <EventsCard
                request={request}
                subject={subject}
                recent={recent}
                consents={consents}
                isDeleting={isDeleting}
              />
              <RefusalsCard subject={subject} recent={recent} usage={usage} />
              <LedgerCard subject={subject} entries={recent.entries} usage={usage} />
              <TopUpsCard shown={topUps} />
              <RunsCard request={request} subject={subject} runs={runs} />
              <UserKeysCard request={request} subject={subject} keys={keys} />
              <div class="columns">
                <IdsCard subject={subject} />
                <ConsentCard request={request} subject={subject} consents={consents} />
              </div>
            </>
          )}
        </>
      ),
    };
  },
};

function AliasNote({ asked, userId }: { asked: string; userId: string }) {
  if (asked === userId) return null;
  return (
    <div class="note">
      <code>{asked}</code> is an alias of this user.
    </div>
  );
}

function Found({ found: { kind, id, status } }: { found: FoundThing }) {
  return (
    <div class="note">
      <code>{id}</code> is {kind === "event" ? "an" : "a"} {KINDS[kind]} of this user. {status === null
        ? ""
        : status === "held"
        ? "It is open."
        : status === "expired"
        ? "It expired."
        : `It was ${status}.`}
    </div>
  );
}

function Tags(
  { subject: { user }, usage, isDeleting }: {
    subject: UserSubject;
    usage: CurrentUsage;
    isDeleting: boolean;
  },
) {
  const { subscription } = usage;
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
      {isDeleting ? <span class="tag bad">deletion pending</span> : null}
    </span>
  );
}

function UnknownUser({ request, subject: { app, user } }: { request: PageRequest; subject: UserSubject }) {
  const search = `${appPath(app)}/search?q=${encodeURIComponent(user.userId)}*`;
  return (
    <div class="note warn">
      <p>
        <b>No user with this ID in {app.mode} mode yet.</b>{" "}
        IDs are case-sensitive. A user is created by the first subscription, credit or call.
      </p>
      <p>
        <a href={search}>Search for IDs that begin with it</a>
        {mayChange(request.session) ? ", or add a plan or credits below." : "."}
      </p>
    </div>
  );
}

/** Links to the actions, the most likely first. */
function UserActions(
  { request, subject: { app, user } }: { request: PageRequest; subject: UserSubject },
) {
  const base = userPath(app, user.userId);
  const link = (name: string, text: string): Child => <a class="button" href={`${base}/${name}`}>{text}</a>;
  return (
    <nav class="buttons actions-bar" aria-label="Actions">
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
                {user.subscription === null ? null : (
                  <>
                    <a href={`${base}/seats`}>Seats and trial</a>
                    <a href={`${base}/next-plan`}>Change plan later</a>
                  </>
                )}
                {user.subscription?.scheduled == null
                  ? null
                  : <a href={`${base}/next-plan/drop`}>Drop the next plan</a>}
                <a href={`${base}/merge`}>Merge with another ID</a>
                <a href={`${base}/parent`}>Change parent</a>
                {hasParent(user) ? <a href={`${base}/member-limits`}>Member limits</a> : null}
                <a href={`${base}/opt-out`}>Opt out</a>
                <a href={`${base}/opt-in`}>Opt in</a>
                <a href={`${base}/export`}>Export user data</a>
                <a href={`${base}/erase`}>Delete user data</a>
                {app.mode === "test" ? <a href={`${appPath(app)}/clock`}>Move test clock</a> : null}
              </div>
            </details>
          </>
        )
        : null}
    </nav>
  );
}

/** The part that the page polls; 204 where nothing changed. */
const currentUsagePart: PageRoute = {
  path: "/console/apps/:appId/:mode/users/:userId/current-usage",
  async show(request) {
    const subject = await loadUser(request);
    if (!("user" in subject)) return subject;
    const usage = await readCurrentUsage(request, subject);
    if (!("groups" in usage)) return usage;
    const seen = request.query.get("seen");
    if (isUnchanged(usage, seen)) return { title: subject.user.userId, content: null, status: 204 };
    return {
      title: subject.user.userId,
      content: <CurrentUsageCards request={request} subject={subject} usage={usage} seen={seen} />,
    };
  },
};

export const userPages: readonly PageRoute[] = [userPage, currentUsagePart];
