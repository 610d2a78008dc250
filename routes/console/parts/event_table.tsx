// The table of events.

import type { AppMode } from "./ask.ts";
import { Ago, AmountText, Time } from "./format.tsx";
import { appPath, userPath } from "./page.tsx";
import { Table } from "./table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import type { listEvents } from "../../contract/events.ts";

/** An event as the API lists it. */
export type FeedEvent = AnswerOf<typeof listEvents>["events"][number];

/** The statuses of events. */
const STATUSES = {
  matched: { text: "counted", kind: "good" },
  matched_credits_only: { text: "credits used", kind: "good" },
  unmatched: { text: "unmetered", kind: "" },
  no_subscription: { text: "no plan", kind: "warn" },
  blocked: { text: "blocked", kind: "bad" },
  released: { text: "released", kind: "" },
} as const;

/** The status of an event. */
export function StatusTag({ status }: { status: FeedEvent["matchStatus"] }) {
  const { text, kind } = STATUSES[status];
  return <span class={`tag ${kind}`} title={status}>{text}</span>;
}

/** What people read of a status. */
export function statusText(status: FeedEvent["matchStatus"]): string {
  return STATUSES[status].text;
}

/** The path of an event's page. */
function eventPath(app: AppMode, eventId: string): string {
  return `${appPath(app)}/events/${encodeURIComponent(eventId)}`;
}

/** Events, newest first. */
export function EventTable({ app, events, now, showsUsers = true, showsPrompts = false }: {
  app: AppMode;
  /** The current time in milliseconds, for times such as "2 h ago"; absent for exact times. */
  now?: number;
  events: readonly FeedEvent[];
  showsUsers?: boolean;
  showsPrompts?: boolean;
}) {
  return (
    <Table
      rows={events}
      columns={[
        {
          head: "Time",
          cell: ({ id, createdAt }) => (
            <a class="row" id={`row-${id}`} href={eventPath(app, id)}>
              {now === undefined ? <Time at={createdAt} /> : <Ago at={createdAt} now={now} />}
            </a>
          ),
        },
        showsUsers
          ? {
            head: "User",
            cell: ({ id, endUserId }) => (
              <a id={`user-of-${id}`} href={userPath(app, endUserId)}>{endUserId}</a>
            ),
          }
          : null,
        { head: "Event type", cell: ({ eventType }) => eventType },
        { head: "Quantity", kind: "number", cell: ({ quantity }) => <AmountText value={quantity} /> },
        {
          head: "Cost",
          kind: "number",
          cell: ({ costCents }) => <AmountText value={costCents} unit="cents" />,
        },
        events.some(({ costCredits }) => costCredits !== undefined)
          ? {
            head: "Credits",
            kind: "number",
            cell: ({ costCredits }) =>
              costCredits === undefined ? <span class="soft">none</span> : <AmountText value={costCredits} />,
          }
          : null,
        { head: "Status", cell: ({ matchStatus }) => <StatusTag status={matchStatus} /> },
        showsPrompts
          ? {
            head: "Prompt",
            kind: "prompt",
            cell: ({ promptPreview }) => promptPreview ?? <span class="soft">none</span>,
          }
          : null,
      ]}
    />
  );
}
