// Events as a table, newest first, wherever a page lists some.

import type { AppMode } from "./ask.ts";
import { AmountText, Time } from "./format.tsx";
import { appPath, userPath } from "./page.tsx";

/** An event as the feed shows it. */
export interface FeedEvent {
  readonly id: string;
  readonly endUserId: string;
  readonly eventType: string;
  readonly quantity: number;
  readonly costCents: number;
  readonly matchStatus: string;
  readonly createdAt: string;
  /** The beginning of its prompt; null where none is kept or may be seen. */
  readonly promptPreview: string | null;
}

/** What became of an event, in plain words. */
const STATUSES: Readonly<Record<string, { readonly text: string; readonly kind: string }>> = {
  matched: { text: "counted", kind: "good" },
  matched_credits_only: { text: "paid by credits", kind: "good" },
  unmatched: { text: "no limit covers it", kind: "" },
  no_subscription: { text: "no plan", kind: "warn" },
  blocked: { text: "blocked", kind: "bad" },
  released: { text: "released", kind: "" },
};

/** What became of an event. */
export function StatusTag({ status }: { status: string }) {
  const { text, kind } = STATUSES[status] ?? { text: status, kind: "" };
  return <span class={`tag ${kind}`} title={status}>{text}</span>;
}

/** The address of an event's page. */
function eventPath(app: AppMode, eventId: string): string {
  return `${appPath(app)}/events/${encodeURIComponent(eventId)}`;
}

/** Events as a table, with whose they are, with what was asked, or with both. */
export function EventTable({ app, events, showsUsers = true, showsPrompts = false }: {
  app: AppMode;
  events: readonly FeedEvent[];
  showsUsers?: boolean;
  showsPrompts?: boolean;
}) {
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>When</th>
          {showsUsers ? <th>User</th> : null}
          <th>Event</th>
          <th class="number">Quantity</th>
          <th class="number">Cost</th>
          <th>What became of it</th>
          {showsPrompts ? <th>Prompt</th> : null}
        </tr>
      </thead>
      <tbody>
        {events.map((event) => (
          <tr>
            <td data-label="When">
              <a class="row" id={`row-${event.id}`} href={eventPath(app, event.id)}>
                <Time at={event.createdAt} />
              </a>
            </td>
            {showsUsers
              ? (
                <td data-label="User">
                  <a href={userPath(app, event.endUserId)}>{event.endUserId}</a>
                </td>
              )
              : null}
            <td data-label="Event">{event.eventType}</td>
            <td data-label="Quantity" class="number">
              <AmountText value={event.quantity} />
            </td>
            <td data-label="Cost" class="number">
              <AmountText value={event.costCents} unit="cents" />
            </td>
            <td data-label="What became of it">
              <StatusTag status={event.matchStatus} />
            </td>
            {showsPrompts
              ? (
                <td data-label="Prompt" class="prompt">
                  {event.promptPreview ?? <span class="soft">none</span>}
                </td>
              )
              : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
