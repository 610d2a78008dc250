// The cards of a user's page about the past: subscriptions with their history, events, refusals and the ledger.

import { groupLabels, packOf, planName, planOf, type ShownCatalog } from "../parts/catalog.ts";
import type { ShownUser, UserSubject } from "../parts/subject.tsx";
import { Ago, AmountText, Time, TimeOr } from "../parts/format.tsx";
import { EventTable, type FeedEvent } from "../parts/event_table.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { REASONS, refusedByColumn, type ShownRefusals } from "./refusals.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { Consents, Ledger } from "./user_records.tsx";
import { Table } from "../parts/table.tsx";
import { listCredits, listLedger } from "../../contract/credits.ts";
import { listEvents } from "../../contract/events.ts";
import { listRefusals } from "../../contract/refused_calls.ts";

/** The newest events of a user. */
interface Feed {
  readonly events: readonly FeedEvent[];
  readonly isLogging: boolean;
}

const SHOWN = "20";

/** Reads the newest events; none where the call fails. */
export async function readEvents({ ask }: PageRequest, { app, user }: UserSubject): Promise<Feed> {
  const feed = await ask.app(app, listEvents, { userId: user.userId, limit: SHOWN });
  return {
    events: feed.ok ? feed.data.events : [],
    isLogging: feed.ok && feed.data.logPromptsEnabled,
  };
}

/** Reads the newest refusals; none where the call fails. */
export async function readRefusals(
  { ask }: PageRequest,
  { app, user }: UserSubject,
  limit = SHOWN,
): Promise<readonly ShownRefusals[]> {
  const listed = await ask.app(app, listRefusals, { userId: user.userId, limit });
  return listed.ok ? listed.data.refusals : [];
}

/** Reads the newest changes of credits; none where a call fails. */
export async function readLedger({ ask }: PageRequest, { app, user }: UserSubject): Promise<Ledger> {
  const { userId } = user;
  const [ledger, listed] = await Promise.all([
    ask.app(app, listLedger, { userId, limit: SHOWN }),
    ask.app(app, listCredits, { userId, includeExpired: "true" }),
  ]);
  return {
    entries: ledger.ok ? ledger.data.entries : [],
    balances: listed.ok ? listed.data.credits : [],
  };
}

const HISTORY_WORDS = {
  created: "created",
  plan_changed: "plan changed",
  canceled: "canceled",
  reactivated: "reactivated",
  ended: "ended",
  merged: "merged from another ID",
  promoted: "now in force",
} as const;

/** The subscription in force, others, and their history. */
export function SubscriptionsCard(
  { subject: { user }, catalog, now }: { subject: UserSubject; catalog: ShownCatalog; now: number },
) {
  const { subscription, history, period } = user;
  const duplicates = user.duplicateActiveSubscriptions?.duplicates ?? [];
  return (
    <section class="card" aria-labelledby="plan">
      <h2 id="plan">Plan and history</h2>
      {subscription === null
        ? <p class="empty">No active subscription</p>
        : <Facts subscription={subscription} catalog={catalog} period={period} />}
      {duplicates.length === 0 ? null : (
        <div class="note warn">
          Several subscriptions are active; the plan with the highest rank is in force. Also active:{" "}
          {duplicates.map(({ planName, provider, externalId, endsAt }) =>
            `${planName} (${provider === null ? "no provider" : `${provider} ${externalId}`}${
              endsAt === null ? "" : `, ends ${endsAt.slice(0, 10)}`
            })`
          ).join(", ")}.
        </div>
      )}
      {history.length === 0 ? null : (
        <Table
          rows={history}
          columns={[
            { head: "Time", cell: ({ at }) => <Ago at={at} now={now} /> },
            { head: "Change", cell: ({ type }) => HISTORY_WORDS[type] },
            {
              head: "Plan",
              cell: ({ planId, previousPlanId, subscriptionId }) => (
                <div>
                  {previousPlanId === null ? "" : `${planName(catalog, previousPlanId)} to `}
                  {planName(catalog, planId)}
                  <code class="soft sub">{subscriptionId}</code>
                </div>
              ),
            },
            { head: "Reason", cell: ({ reason }) => reason ?? "" },
          ]}
        />
      )}
    </section>
  );
}

function Facts(
  { subscription, catalog, period }: {
    subscription: NonNullable<ShownUser["subscription"]>;
    catalog: ShownCatalog;
    period: ShownUser["period"];
  },
) {
  const { planId, provider, externalId, startedAt, endsAt, cycleAnchorAt } = subscription;
  return (
    <dl class="facts spaced">
      <dt>Plan</dt>
      <dd>
        <span title={planId}>{planName(catalog, planId)}</span>
      </dd>
      <dt>Subscription</dt>
      <dd>
        <code class="soft">{subscription.subscriptionId}</code>
      </dd>
      <dt>Source</dt>
      <dd>{provider === null ? "your server (no provider)" : `${provider} ${externalId}`}</dd>
      <dt>Since</dt>
      <dd>
        <Time at={startedAt} />
      </dd>
      <dt>Ends</dt>
      <dd>
        <TimeOr at={endsAt} none="not set" />
      </dd>
      {period === null ? null : (
        <>
          <dt>Current period</dt>
          <dd>
            <Time at={period.start} /> to <TimeOr at={period.end} none="no end" />
          </dd>
        </>
      )}
      {cycleAnchorAt === null ? null : (
        <>
          <dt>Cycle anchor</dt>
          <dd>
            <Time at={cycleAnchorAt} />
          </dd>
        </>
      )}
      <Offers subscription={subscription} catalog={catalog} />
    </dl>
  );
}

/** What the plan includes, seats, the trial and the change of plan that is to come, where there are any. */
function Offers(
  { subscription: { planId, quantity, trialEndsAt, scheduled }, catalog }: {
    subscription: NonNullable<ShownUser["subscription"]>;
    catalog: ShownCatalog;
  },
) {
  const { includes = [], period } = planOf(catalog, planId) ?? {};
  return (
    <>
      {includes.length === 0 ? null : (
        <>
          <dt>Includes</dt>
          <dd>
            {includes.map((include) => <div>{includedText(include, period, catalog)}</div>)}
          </dd>
        </>
      )}
      {quantity === undefined ? null : (
        <>
          <dt>Seats</dt>
          <dd>{quantity}</dd>
        </>
      )}
      {trialEndsAt == null ? null : (
        <>
          <dt>Trial ends</dt>
          <dd>
            <Time at={trialEndsAt} />
          </dd>
        </>
      )}
      {scheduled == null ? null : (
        <>
          <dt>Next plan</dt>
          <dd>
            {planName(catalog, scheduled.planId)} from <Time at={scheduled.at} />
          </dd>
        </>
      )}
    </>
  );
}

type Plan = NonNullable<ShownCatalog["plans"]>[number];

/** "500 of Images monthly; what is left rolls over for 2 windows, up to 800". */
function includedText(
  { packId, quantity, period: own, rollover }: NonNullable<Plan["includes"]>[number],
  ofPlan: Plan["period"] | undefined,
  catalog: ShownCatalog,
): string {
  const name = packOf(catalog, packId)?.name ?? packId;
  const what = quantity === undefined ? name : `${quantity} of ${name}`;
  const often = (own ?? ofPlan)?.type ?? "";
  if (rollover === undefined) return `${what} ${often}`;
  const windows = rollover.periods === 1 ? "1 window" : `${rollover.periods} windows`;
  return `${what} ${often}; what is left rolls over for ${windows}, up to ${rollover.max}`;
}

/** The newest events with their prompts, or the reason why prompts are hidden. */
export function EventsCard(
  { request, subject: { app, user }, feed: { events, isLogging }, consents, isDeleting, now }: {
    request: PageRequest;
    subject: UserSubject;
    feed: Feed;
    consents: Consents;
    isDeleting: boolean;
    now: number;
  },
) {
  const hidden = hiddenPrompts(request, isLogging, consents);
  const of = `?user=${encodeURIComponent(user.userId)}`;
  return (
    <section class="card" aria-labelledby="events">
      <div class="head">
        <h2 id="events">Newest events</h2>
        {events.length === 0 ? null : (
          <span class="choices">
            <a href={`${appPath(app)}/usage${of}`}>Usage</a>
            <a href={`${appPath(app)}/events${of}`}>All events</a>
          </span>
        )}
      </div>
      {isDeleting
        ? <p class="empty">Hidden: the data of this user is being deleted.</p>
        : consents.ai_personalization
        ? (
          <p class="empty">
            Hidden: this user opted out of personalization. Events are still counted.
          </p>
        )
        : events.length === 0
        ? <p class="empty">No events of this user yet.</p>
        : (
          <>
            {hidden === null ? null : <p class="hint">{hidden}</p>}
            <EventTable
              app={app}
              events={events}
              now={now}
              showsUsers={false}
              showsPrompts={hidden === null}
            />
          </>
        )}
    </section>
  );
}

/** Why prompts are hidden; null where they are shown. */
function hiddenPrompts({ ask }: PageRequest, isLogging: boolean, consents: Consents): string | null {
  if (!isLogging) return "Prompts are hidden: prompt logging is off in the catalog's settings.";
  if (consents.prompt_logging) return "Prompts are not stored: this user opted out of prompt logging.";
  return ask.hidesPrompts ? "Prompts are hidden for your role." : null;
}

/** The refused calls of the user. */
export function RefusalsCard(
  { subject, catalog, refusals, now }: Parameters<typeof RefusalsOfUser>[0],
) {
  return (
    <section class="card" aria-labelledby="refusals">
      <h2 id="refusals">Refusals</h2>
      {refusals.length === 0
        ? <p class="empty">No refusals in the last 90 days</p>
        : <RefusalsOfUser subject={subject} catalog={catalog} refusals={refusals} now={now} />}
    </section>
  );
}

/** Refused calls of one user, each with a link that explains the same call now. */
export function RefusalsOfUser(
  { subject: { app, user }, catalog, refusals, now }: {
    subject: UserSubject;
    catalog: ShownCatalog;
    refusals: readonly ShownRefusals[];
    now: number;
  },
) {
  const labels = groupLabels(catalog);
  const explainPath = (event: string) =>
    `${userPath(app, user.userId)}/explain?event=${encodeURIComponent(event)}`;
  return (
    <Table
      rows={refusals}
      columns={[
        { head: "Last seen", cell: ({ lastAt }) => <Ago at={lastAt} now={now} /> },
        { head: "Event type", cell: ({ event }) => event },
        {
          head: "Reason",
          cell: ({ reasons }) => reasons.map((reason) => REASONS[reason]).join(", "),
        },
        refusedByColumn(app, refusals),
        { head: "Limits", cell: ({ groupIds }) => groupIds.map((id) => labels.get(id) ?? id).join(", ") },
        { head: "Calls", kind: "number", cell: ({ count }) => <AmountText value={count} /> },
        {
          head: "Actions",
          kind: "actions",
          cell: ({ event }) => <a class="row" href={explainPath(event)}>Check again</a>,
        },
      ]}
    />
  );
}
