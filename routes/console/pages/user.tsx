// The page of a user in four tabs, each with an address of its own: what counts now, plan and billing, activity, privacy.

import type { Child } from "hono/jsx";
import { AccountCard, readBelow } from "./accounts.tsx";
import { planName, readCatalog, type ShownCatalog } from "../parts/catalog.ts";
import { MarginsOfUserCard, readMarginsOfUser } from "./margins.tsx";
import { hasParent, loadUser, type TabPath, type UserSubject } from "../parts/subject.tsx";
import { Time } from "../parts/format.tsx";
import { appPath, crumbsOf, userPath, usersCrumb } from "../parts/page.tsx";
import {
  mayChange,
  mayMake,
  type PageContent,
  type PageRequest,
  type PageRoute,
} from "../parts/page_context.ts";
import { nowOf } from "../parts/daily_usage.tsx";
import { readUserDays, UseCard } from "./user_days.tsx";
import { readRefusal, RefusalBanner } from "./user_refusal.tsx";
import { type FoundThing, KINDS } from "./search.tsx";
import { CurrentUsageCards, isUnchanged, readCurrentUsage } from "./user_usage.tsx";
import { readRuns, RunsCard } from "./runs.tsx";
import { ConsentCard, IdsCard, LedgerCard, readConsents } from "./user_records.tsx";
import { readUserKeys, UserKeysCard } from "./user_keys_actions.tsx";
import { readTopUps, TopUpsCard } from "./top_ups.tsx";
import { FeaturesCard } from "./features.tsx";
import { readStripeOfUser, StripeOfUserCard, UnhandledNote } from "./user_stripe.tsx";
import {
  EventsCard,
  readEvents,
  readLedger,
  readRefusals,
  RefusalsCard,
  SubscriptionsCard,
} from "./user_activity.tsx";
import { listUsers, lookUpId } from "../../contract/admin_users.ts";
import { grantCredits } from "../../contract/credits.ts";

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

/** What every tab gets. */
interface TabRequest {
  readonly request: PageRequest;
  readonly subject: UserSubject;
  readonly catalog: ShownCatalog;
  readonly isDeleting: boolean;
  /** The current time of the app's mode, in milliseconds. */
  readonly now: number;
}

/** A tab: the end of its path, its title, and its content. */
interface Tab {
  readonly path: TabPath;
  readonly title: string;
  readonly show: (
    tab: TabRequest,
  ) => Promise<{ readonly content: Child; readonly title?: undefined } | PageContent>;
}

/** The banner with the last refusal; null for none. A user who was only refused has a banner, and no row yet. */
async function lastRefusalOf(
  { request, subject, now }: Pick<TabRequest, "request" | "subject" | "now">,
): Promise<Child> {
  const refusal = await readRefusal(request, subject, now);
  if (refusal === null) return null;
  return <RefusalBanner request={request} subject={subject} refusal={refusal} now={now} />;
}

const nowTab: Tab = {
  path: "",
  title: "Now",
  async show({ request, subject, now }) {
    const [usage, below, use, stripe] = await Promise.all([
      readCurrentUsage(request, subject),
      readBelow(request, subject),
      readUserDays(request, subject, now),
      readStripeOfUser(request, subject),
    ]);
    const refusal = await lastRefusalOf({ request, subject, now });
    return {
      content: (
        <>
          {refusal}
          <UnhandledNote subject={subject} stripe={stripe} now={now} />
          <CurrentUsageCards request={request} subject={subject} usage={usage} seen={null} now={now} />
          <AccountCard subject={subject} below={below} levels={usage.levels} />
          <UseCard subject={subject} use={use} now={now} />
        </>
      ),
    };
  },
};

const billingTab: Tab = {
  path: "/billing",
  title: "Plan and billing",
  async show({ request, subject, catalog, now }) {
    const [ledger, topUps, stripe, margins] = await Promise.all([
      readLedger(request, subject),
      readTopUps(request, subject),
      readStripeOfUser(request, subject),
      readMarginsOfUser(request, subject),
    ]);
    return {
      content: (
        <>
          <SubscriptionsCard subject={subject} catalog={catalog} now={now} />
          <StripeOfUserCard subject={subject} stripe={stripe} catalog={catalog} now={now} />
          <MarginsOfUserCard subject={subject} margins={margins} />
          <TopUpsCard shown={topUps} />
          <LedgerCard subject={subject} ledger={ledger} now={now} />
          <FeaturesCard subject={subject} />
        </>
      ),
    };
  },
};

const activityTab: Tab = {
  path: "/activity",
  title: "Activity",
  async show({ request, subject, catalog, isDeleting, now }) {
    const [feed, refusals, consents, runs] = await Promise.all([
      readEvents(request, subject),
      readRefusals(request, subject),
      readConsents(request, subject),
      readRuns(request, subject),
    ]);
    return {
      content: (
        <>
          <RefusalsCard subject={subject} catalog={catalog} refusals={refusals} now={now} />
          <RunsCard request={request} subject={subject} runs={runs} />
          <EventsCard
            request={request}
            subject={subject}
            feed={feed}
            consents={consents}
            isDeleting={isDeleting}
            now={now}
          />
        </>
      ),
    };
  },
};

const privacyTab: Tab = {
  path: "/privacy",
  title: "Privacy",
  async show({ request, subject }) {
    const [consents, keys] = await Promise.all([
      readConsents(request, subject),
      readUserKeys(request, subject),
    ]);
    return {
      content: (
        <>
          <div class="columns">
            <ConsentCard request={request} subject={subject} consents={consents} />
            <IdsCard subject={subject} />
          </div>
          <UserKeysCard request={request} subject={subject} keys={keys} />
        </>
      ),
    };
  },
};

const TABS: readonly Tab[] = [nowTab, billingTab, activityTab, privacyTab];

/** The page of a tab. */
function pageOf(tab: Tab): PageRoute {
  return {
    path: `/console/apps/:appId/:mode/users/:userId${tab.path}`,
    async show(request) {
      const subject = await loadUser(request);
      const { app, user } = subject;
      const [catalog, known, found, now] = await Promise.all([
        readCatalog(request, app),
        readKnown(request, subject),
        readFound(request, subject),
        nowOf(request, app),
      ]);
      const isDeleting = known?.deletionPending === true;
      const asked = { request, subject, catalog, isDeleting, now };
      const shown = known === null ? null : await tab.show(asked);
      if (shown?.title !== undefined) return shown;
      const banner = known === null ? await lastRefusalOf(asked) : null;
      return {
        title: tab.path === "" ? user.userId : `${tab.title} of ${user.userId}`,
        crumbs: crumbsOf(app, usersCrumb(app), user.userId),
        content: (
          <>
            <Head subject={subject} catalog={catalog} isDeleting={isDeleting} />
            <AliasNote asked={request.params["userId"] ?? ""} userId={user.userId} />
            {isDeleting
              ? (
                <div class="note warn">
                  The data of this user is being deleted. Events and refusals are hidden.
                </div>
              )
              : null}
            {known === null ? <UnknownUser request={request} subject={subject} /> : null}
            {found === null ? null : <Found subject={subject} found={found} />}
            <UserActions request={request} subject={subject} />
            {shown === null ? banner : (
              <>
                <Tabs subject={subject} chosen={tab} />
                {shown.content}
              </>
            )}
          </>
        ),
      };
    },
  };
}

function Tabs({ subject: { app, user }, chosen }: { subject: UserSubject; chosen: Tab }) {
  const base = userPath(app, user.userId);
  return (
    <nav class="tabs" aria-label="Sections">
      {TABS.map((tab) => (
        <a href={`${base}${tab.path}`} aria-current={tab === chosen ? "page" : undefined}>{tab.title}</a>
      ))}
    </nav>
  );
}

function AliasNote({ asked, userId }: { asked: string; userId: string }) {
  if (asked === userId) return null;
  return (
    <div class="note">
      <code>{asked}</code> is an alias of this user.
    </div>
  );
}

function Found(
  { subject: { app, user }, found: { kind, id, status } }: { subject: UserSubject; found: FoundThing },
) {
  return (
    <div class="note">
      <code>{id}</code> is {kind === "event" ? "an" : "a"} {KINDS[kind]} of this user. {status === null
        ? ""
        : status === "held"
        ? "It is open."
        : status === "expired"
        ? "It expired."
        : `It was ${status}.`}
      {kind === "subscription"
        ? <a href={`${userPath(app, user.userId)}${billingTab.path}`}>{billingTab.title}</a>
        : null}
    </div>
  );
}

function Head(
  { subject: { user }, catalog, isDeleting }: {
    subject: UserSubject;
    catalog: ShownCatalog;
    isDeleting: boolean;
  },
) {
  const { subscription } = user;
  const endsAt = subscription?.endsAt ?? null;
  return (
    <div class="head">
      <h1>{user.userId}</h1>
      <span class="tags">
        {subscription === null
          ? <span class="tag warn">no plan</span>
          : <span class="tag good">{planName(catalog, subscription.planId)}</span>}
        {endsAt === null ? null : (
          <span class="tag warn">
            ends <Time at={endsAt} />
          </span>
        )}
        {isDeleting ? <span class="tag bad">deletion pending</span> : null}
      </span>
    </div>
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
  const hasPlan = user.subscription !== null;
  return (
    <nav class="buttons actions-bar" aria-label="Actions">
      {link("explain", "Why was this refused?")}
      {mayMake(request.session, grantCredits) ? link("grant", "Grant credits") : null}
      {mayChange(request.session)
        ? (
          <>
            {link("plan", "Change plan")}
            {hasPlan ? link("limits", "Custom limits") : null}
            {hasPlan ? link("cancel", "Cancel plan") : null}
            <details class="menu">
              <summary class="button">More</summary>
              <div class="items">
                {hasPlan
                  ? (
                    <>
                      <a href={`${base}/seats`}>Seats and trial</a>
                      <a href={`${base}/next-plan`}>Change plan later</a>
                    </>
                  )
                  : null}
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
    const { app, user: { userId } } = subject;
    const [usage, now] = await Promise.all([readCurrentUsage(request, subject), nowOf(request, app)]);
    const seen = request.query.get("seen");
    if (isUnchanged(usage, seen)) return { title: userId, content: null, status: 204 };
    return {
      title: userId,
      content: <CurrentUsageCards request={request} subject={subject} usage={usage} seen={seen} now={now} />,
    };
  },
};

export const userPages: readonly PageRoute[] = [...TABS.map(pageOf), currentUsagePart];
