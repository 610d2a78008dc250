// The cards of a user's page about the past: subscriptions with their history, events and refusals.

import { packOf, planName, planOf, type ShownCatalog } from "../parts/catalog.ts";
import type { ShownUser, UserSubject } from "../parts/subject.tsx";
import { AmountText, Time, TimeOr } from "../parts/format.tsx";
import { EventTable, type FeedEvent } from "../parts/event_table.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { REASONS, refusedByColumn, type ShownRefusals } from "./refusals.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { CurrentUsage } from "./user_usage.tsx";
import type { Consents } from "./user_records.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listLedger } from "../../contract/credits.ts";
import { listEvents } from "../../contract/events.ts";
import { listRefusals } from "../../contract/refused_calls.ts";

/** The newest events, refusals and ledger entries of a user. */
export interface Recent {
  readonly events: readonly FeedEvent[];
  readonly isLogging: boolean;
  readonly refusals: readonly ShownRefusals[];
  readonly entries: AnswerOf<typeof listLedger>["entries"];
}

const SHOWN = "20";

/** Reads the newest events, refusals and ledger entries. */
export async function readRecent({ ask }: PageRequest, { app, user }: UserSubject): Promise<Recent> {
  const asked = { userId: user.userId, limit: SHOWN };
  const [feed, refusals, ledger] = await Promise.all([
    ask.app(app, listEvents, asked),
    ask.app(app, listRefusals, asked),
    ask.app(app, listLedger, asked),
  ]);
  return {
    events: feed.ok ? feed.data.events : [],
    isLogging: feed.ok && feed.data.logPromptsEnabled,
    refusals: refusals.ok ? refusals.data.refusals : [],
    entries: ledger.ok ? ledger.data.entries : [],
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
  { subject: { user }, catalog }: { subject: UserSubject; catalog: ShownCatalog },
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
            { head: "Time", cell: ({ at }) => <Time at={at} /> },
            { head: "Change", cell: ({ type }) => HISTORY_WORDS[type] },
            {
              head: "Plan",
              cell: ({ planId, previousPlanId }) => (
                <>
                  {previousPlanId === null ? "" : `${planName(catalog, previousPlanId)} to `}
                  {planName(catalog, planId)}
                </>
              ),
            },
            { head: "Reason", cell: ({ reason }) => reason ?? "" },
            { head: "Subscription", cell: ({ subscriptionId }) => <code>{subscriptionId}</code> },
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
        {planName(catalog, planId)} <code class="soft">{planId}</code>
      </dd>
      <dt>Subscription</dt>
      <dd>
        <code>{subscription.subscriptionId}</code>
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
  { request, subject: { app, user }, recent: { events, isLogging }, consents, isDeleting }: {
    request: PageRequest;
    subject: UserSubject;
    recent: Recent;
    consents: Consents;
    isDeleting: boolean;
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
            <EventTable app={app} events={events} showsUsers={false} showsPrompts={hidden === null} />
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
  { subject: { app, user }, recent: { refusals }, usage }: {
    subject: UserSubject;
    recent: Recent;
    usage: CurrentUsage;
  },
) {
  const labels = new Map(usage.groups.map(({ groupId, label }) => [groupId, label]));
  const explainPath = (event: string) =>
    `${userPath(app, user.userId)}/explain?event=${encodeURIComponent(event)}`;
  return (
    <section class="card" aria-labelledby="refusals">
      <h2 id="refusals">Refusals</h2>
      {refusals.length === 0 ? <p class="empty">No refusals in the last 90 days</p> : (
        <Table
          rows={refusals}
          columns={[
            { head: "Last seen", cell: ({ lastAt }) => <Time at={lastAt} /> },
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
      )}
    </section>
  );
}
