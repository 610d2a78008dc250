// The sheets of a user's page that tell what was: subscriptions with history, events and refusals.

import type { LedgerEntry } from "../../../src/client/wire_types.ts";
import { planName, type ShownCatalog } from "./catalog_actions.ts";
import type { ShownSubscription, UserSubject } from "../parts/subject.tsx";
import { AmountText, Time, TimeOr } from "../parts/format.tsx";
import { EventTable, type FeedEvent } from "../parts/event_table.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { REASONS, type ShownRefusals } from "./refusals.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { Standing } from "./user_usage.tsx";
import type { Consents } from "./user_records.tsx";

/** What happened last. */
export interface Recent {
  readonly events: readonly FeedEvent[];
  readonly isLogging: boolean;
  readonly refusals: readonly ShownRefusals[];
  readonly entries: readonly LedgerEntry[];
}

const SHOWN = "20";

/** Reads what happened last. */
export async function readRecent({ ask }: PageRequest, { app, user }: UserSubject): Promise<Recent> {
  const asked = { userId: user.userId, limit: SHOWN };
  const [feed, refusals, ledger] = await Promise.all([
    ask.app<{ events: FeedEvent[]; logPromptsEnabled: boolean }>(app, "listEvents", asked),
    ask.app<{ refusals: ShownRefusals[] }>(app, "listRefusals", asked),
    ask.app<{ entries: LedgerEntry[] }>(app, "listLedger", asked),
  ]);
  return {
    events: feed.ok ? feed.data.events : [],
    isLogging: feed.ok && feed.data.logPromptsEnabled,
    refusals: refusals.ok ? refusals.data.refusals : [],
    entries: ledger.ok ? ledger.data.entries : [],
  };
}

const HISTORY_WORDS: Readonly<Record<string, string>> = {
  created: "began",
  plan_changed: "plan changed",
  canceled: "canceled",
  reactivated: "came back",
  ended: "ended",
  merged: "came with a merge",
  promoted: "took over",
};

/** The plan in force, other subscriptions, and what became of them. */
export function SubscriptionsSheet(
  { subject: { user }, catalog }: { subject: UserSubject; catalog: ShownCatalog },
) {
  const { subscription, history, period, duplicates } = user;
  return (
    <section class="sheet" aria-labelledby="plan">
      <h2 id="plan">Plan and history</h2>
      {subscription === null
        ? <p class="empty">No subscription is active.</p>
        : <Facts subscription={subscription} catalog={catalog} period={period} />}
      {duplicates.length === 0 ? null : (
        <div class="note warn">
          Several subscriptions are active; the best plan counts. Beside it:{" "}
          {duplicates.map(({ planName, provider, externalId, endsAt }) =>
            `${planName} (${provider === null ? "default" : `${provider} ${externalId}`}${
              endsAt === null ? "" : `, ends ${endsAt.slice(0, 10)}`
            })`
          ).join(", ")}.
        </div>
      )}
      {history.length === 0 ? null : (
        <table class="stack">
          <thead>
            <tr>
              <th>When</th>
              <th>What</th>
              <th>Plan</th>
              <th>Reason</th>
              <th>Subscription</th>
            </tr>
          </thead>
          <tbody>
            {history.map((row) => (
              <tr>
                <td data-label="When">
                  <Time at={row.at} />
                </td>
                <td data-label="What">{HISTORY_WORDS[row.type] ?? row.type}</td>
                <td data-label="Plan">
                  {row.previousPlanId === null ? "" : `${planName(catalog, row.previousPlanId)} to `}
                  {planName(catalog, row.planId)}
                </td>
                <td data-label="Reason">{row.reason ?? ""}</td>
                <td data-label="Subscription">
                  <code>{row.subscriptionId}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Facts(
  { subscription, catalog, period }: {
    subscription: ShownSubscription;
    catalog: ShownCatalog;
    period: UserSubject["user"]["period"];
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
      <dt>Sold by</dt>
      <dd>{provider === null ? "your backend (default)" : `${provider} ${externalId}`}</dd>
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
          <dt>This period</dt>
          <dd>
            <Time at={period.start} /> to <TimeOr at={period.end} none="no end" />
          </dd>
        </>
      )}
      {cycleAnchorAt === null ? null : (
        <>
          <dt>Cycle from</dt>
          <dd>
            <Time at={cycleAnchorAt} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The newest events, with what they asked where that may be seen, and why where it may not. */
export function EventsSheet(
  { request, subject: { app, user }, recent: { events, isLogging }, consents, isErasing }: {
    request: PageRequest;
    subject: UserSubject;
    recent: Recent;
    consents: Consents;
    isErasing: boolean;
  },
) {
  const hidden = hiddenPrompts(request, isLogging, consents);
  const of = `?user=${encodeURIComponent(user.userId)}`;
  return (
    <section class="sheet" aria-labelledby="events">
      <div class="head">
        <h2 id="events">Newest events</h2>
        {events.length === 0 ? null : (
          <span class="choices">
            <a href={`${appPath(app)}/usage${of}`}>Use by day</a>
            <a href={`${appPath(app)}/events${of}`}>All events</a>
          </span>
        )}
      </div>
      {isErasing
        ? <p class="empty">Hidden: an erasure of this person waits.</p>
        : consents.ai_personalization
        ? (
          <p class="empty">
            Hidden: this user opted out of personalization, so their events are in no feed. They are still
            counted.
          </p>
        )
        : events.length === 0
        ? <p class="empty">Nothing was metered for this user yet. Events show as your backend sends them.</p>
        : (
          <>
            {hidden === null ? null : <p class="hint">{hidden}</p>}
            <EventTable app={app} events={events} showsUsers={false} showsPrompts={hidden === null} />
          </>
        )}
    </section>
  );
}

/** Why no prompt shows; null where prompts show. */
function hiddenPrompts({ ask }: PageRequest, isLogging: boolean, consents: Consents): string | null {
  if (!isLogging) return "Prompts are hidden: prompt logging is off in the catalog's settings.";
  if (consents.prompt_logging) return "Prompts are not kept: this user opted out of prompt logging.";
  return ask.hidesPrompts ? "Prompts are hidden from your role." : null;
}

/** Which limits the user met. */
export function RefusalsSheet(
  { subject: { app, user }, recent: { refusals }, standing }: {
    subject: UserSubject;
    recent: Recent;
    standing: Standing;
  },
) {
  const labels = new Map(standing.groups.map(({ groupId, label }) => [groupId, label]));
  const why = (event: string) => `${userPath(app, user.userId)}/explain?event=${encodeURIComponent(event)}`;
  return (
    <section class="sheet" aria-labelledby="refusals">
      <h2 id="refusals">Refusals</h2>
      {refusals.length === 0
        ? <p class="empty">Nothing was refused to this user in the last 90 days.</p>
        : (
          <table class="stack">
            <thead>
              <tr>
                <th>Last</th>
                <th>Event</th>
                <th>Reason</th>
                <th>Limits</th>
                <th class="number">Times</th>
                <th>Explain</th>
              </tr>
            </thead>
            <tbody>
              {refusals.map((row) => (
                <tr>
                  <td data-label="Last">
                    <Time at={row.lastAt} />
                  </td>
                  <td data-label="Event">{row.event}</td>
                  <td data-label="Reason">
                    {row.reasons.map((reason) => REASONS[reason] ?? reason).join(", ")}
                  </td>
                  <td data-label="Limits">{row.groupIds.map((id) => labels.get(id) ?? id).join(", ")}</td>
                  <td data-label="Times" class="number">
                    <AmountText value={row.count} />
                  </td>
                  <td data-label="Explain">
                    <a class="row" href={why(row.event)}>Would it be now?</a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
    </section>
  );
}
