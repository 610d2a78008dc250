// The table of events.

import type { AppMode } from "./ask.ts";
import { AmountText, Time } from "./format.tsx";
import { appPath, userPath } from "./page.tsx";
import { Table } from "./table.tsx";

/** An event as the API lists it. */
export interface FeedEvent {
  readonly id: string;
  readonly endUserId: string;
  readonly eventType: string;
  readonly quantity: number;
  readonly costCents: number;
  readonly matchStatus: string;
  readonly createdAt: string;
  /** The beginning of the prompt; null where none is stored or this role may not see it. */
  readonly promptPreview: string | null;
}

/** The statuses of events. */
const STATUSES: Readonly<Record<string, { readonly text: string; readonly kind: string }>> = {
  matched: { text: "counted", kind: "good" },
  matched_credits_only: { text: "credits used", kind: "good" },
  unmatched: { text: "unmetered", kind: "" },
  no_subscription: { text: "no plan", kind: "warn" },
  blocked: { text: "blocked", kind: "bad" },
  released: { text: "released", kind: "" },
};

/** The status of an event. */
export function StatusTag({ status }: { status: string }) {
  const { text, kind } = STATUSES[status] ?? { text: status, kind: "" };
  return <span class={`tag ${kind}`} title={status}>{text}</span>;
}

/** The path of an event's page. */
function eventPath(app: AppMode, eventId: string): string {
  return `${appPath(app)}/events/${encodeURIComponent(eventId)}`;
}

/** Events, newest first. */
export function EventTable({ app, events, showsUsers = true, showsPrompts = false }: {
  app: AppMode;
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
              <Time at={createdAt} />
            </a>
          ),
        },
        showsUsers
          ? { head: "User", cell: ({ endUserId }) => <a href={userPath(app, endUserId)}>{endUserId}</a> }
          : null,
        { head: "Event type", cell: ({ eventType }) => eventType },
        { head: "Quantity", kind: "number", cell: ({ quantity }) => <AmountText value={quantity} /> },
        {
          head: "Cost",
          kind: "number",
          cell: ({ costCents }) => <AmountText value={costCents} unit="cents" />,
        },
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
