// The current usage of a user: limits as bars, credits and open holds. The page polls this part every few seconds and
// replaces it only when it has changed.

import { createHash } from "node:crypto";
import { dataOf, hasParent, type UserSubject } from "../parts/subject.tsx";
import { AmountText, amountText, Time, TimeOr } from "../parts/format.tsx";
import { LimitBar, type OwnWindow } from "../parts/limit_bar.tsx";
import { userPath } from "../parts/page.tsx";
import { mayChange, mayMake, type PageRequest } from "../parts/page_context.ts";
import { type Column, Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listHolds } from "../../contract/admin_users.ts";
import { listCredits } from "../../contract/credits.ts";
import { explain, release } from "../../contract/metering.ts";

type Explanation = AnswerOf<typeof explain>;
type CreditBalance = AnswerOf<typeof listCredits>["credits"][number];
type ShownHold = AnswerOf<typeof listHolds>["holds"][number];

/** The limits, credits and open holds of a user. */
export interface CurrentUsage {
  readonly subscription: Explanation["subscription"];
  readonly groups: Explanation["groups"];
  /** The windows of limits with a period of their own, and the most overage in force, by group id. */
  readonly windows: ReadonlyMap<string, OwnWindow>;
  /** The users above, nearest first, with their limits. */
  readonly levels: NonNullable<Explanation["levels"]>;
  /** Spendable balances in the order of use. */
  readonly spendable: Explanation["credits"];
  readonly balances: readonly CreditBalance[];
  readonly holds: readonly ShownHold[];
  readonly hasMoreHolds: boolean;
}

/** An event type that no rule matches: explain then returns every limit. */
const UNMATCHED_EVENT = "-";

/** Reads the current usage. */
export async function readCurrentUsage(
  { ask }: PageRequest,
  { app, user }: UserSubject,
): Promise<CurrentUsage> {
  const { userId } = user;
  // A call may fail while the user is being deleted or merged; the page shows the error and polls again.
  const [{ subscription, groups, levels = [], credits: spendable }, balances, { holds, hasMore }] =
    await Promise.all([
      ask.app(app, explain, { userId, event: UNMATCHED_EVENT }).then(dataOf),
      ask.app(app, listCredits, { userId, includeExpired: "true" }).then(dataOf),
      ask.admin(listHolds, { appId: app.appId, mode: app.mode, userId }).then(dataOf),
    ]);
  return {
    subscription,
    groups,
    levels,
    windows: new Map(
      user.counters.map((
        { groupId, period, window, overageMax },
      ) => [groupId, { period, window, overageMax }]),
    ),
    spendable,
    balances: balances.credits,
    holds,
    hasMoreHolds: hasMore,
  };
}

const POLL = "every 2s";

/** Short hashes of what the page shows: one for each limit, and one for credits and holds. */
function hashesOf({ groups, windows, balances, holds }: CurrentUsage): readonly string[] {
  const limits = groups.map((group) => [group, windows.get(group.groupId)]);
  return [...limits, [balances, holds]].map((part) =>
    createHash("sha256").update(JSON.stringify(part)).digest("base64url").slice(0, 8)
  );
}

/** Whether a browser that sends the hashes `seen` shows this already. */
export function isUnchanged(usage: CurrentUsage, seen: string | null): boolean {
  return seen === hashesOf(usage).join(".");
}

/**
 * The part of the page.
 *
 * @param seen the hashes of what the browser shows; limits that changed are highlighted for a moment
 */
export function CurrentUsageCards(
  { request, subject, usage, seen, now }: {
    request: PageRequest;
    subject: UserSubject;
    usage: CurrentUsage;
    seen: string | null;
    /** The current time of the app's mode, in milliseconds. */
    now: number;
  },
) {
  const { app, user } = subject;
  const { groups } = usage;
  const hashes = hashesOf(usage);
  const before = seen?.split(".") ?? [];
  const isChanged = (index: number) => before.length === hashes.length && before[index] !== hashes[index];
  const path = `${userPath(app, user.userId)}/current-usage?seen=${hashes.join(".")}`;
  return (
    <div id="current-usage" hx-get={path} hx-trigger={POLL} hx-swap="outerHTML">
      <section class="card" aria-labelledby="limits">
        <div class="head">
          <h2 id="limits">Limits</h2>
          <span class="soft is-live">live</span>
        </div>
        {groups.length === 0
          ? (
            <p class="empty">
              {usage.subscription === null
                ? hasParent(user)
                  ? "This user has no plan. Limits of the users above apply, see Account."
                  : "This user has no plan. Only credits can be used."
                : "The plan has no limits."}
            </p>
          )
          : (
            <div class="groups">
              {groups.map((group, index) => (
                <LimitBar
                  group={group}
                  own={usage.windows.get(group.groupId) ?? {}}
                  planPeriod={user.period}
                  now={now}
                  capPath={mayChange(request.session)
                    ? `${userPath(app, user.userId)}/limits/${encodeURIComponent(group.groupId)}/spend-cap`
                    : null}
                  isChanged={isChanged(index)}
                />
              ))}
            </div>
          )}
      </section>
      <section class="card" aria-labelledby="credits">
        <h2 id="credits">Credits</h2>
        <Balances request={request} subject={subject} usage={usage} />
      </section>
      <section class="card" aria-labelledby="holds">
        <h2 id="holds">Open holds</h2>
        <Holds request={request} subject={subject} usage={usage} />
      </section>
    </div>
  );
}

interface Part {
  readonly request: PageRequest;
  readonly subject: UserSubject;
  readonly usage: CurrentUsage;
}

const STATUS_KINDS = { active: "good", depleted: "", expired: "warn", revoked: "bad" } as const;

function Balances({ request, subject: { app, user }, usage }: Part) {
  const { balances } = usage;
  if (balances.length === 0) return <p class="empty">No credits</p>;
  const current = balances.filter(({ status }) => status === "active" || status === "depleted");
  const past = balances.filter((balance) => !current.includes(balance));
  const columns = balanceColumns(usage, mayChange(request.session) ? userPath(app, user.userId) : null);
  const table = (rows: readonly CreditBalance[]) => (
    <Table
      rows={rows}
      idOf={({ balanceId }) => balanceId}
      columns={columns}
    />
  );
  return (
    <>
      {current.length === 0 ? <p class="empty">No spendable credits</p> : table(current)}
      {past.length === 0 ? null : (
        <details class="more" id="past-credits">
          <summary id="past-credits-summary">
            {past.length === 1 ? "1 past balance" : `${past.length} past balances`}
          </summary>
          {table(past)}
        </details>
      )}
    </>
  );
}

/** What people read of where credits come from. */
const ORIGINS = { plan: "with the plan", rollover: "rolled over", topup: "top-up" } as const;

/** @param path of the user, for the actions; null for people who may not change anything */
function balanceColumns(
  { spendable, holds }: CurrentUsage,
  path: string | null,
): readonly (Column<CreditBalance> | null)[] {
  const order = new Map(spendable.map(({ balanceId }, index) => [balanceId, index + 1]));
  const heldOf = (id: string) =>
    holds.flatMap(({ amounts }) => amounts).filter((from) => "balanceId" in from && from.balanceId === id)
      .reduce((sum, { amount }) => sum + amount, 0);
  return [
    {
      head: "Order",
      hint: "Which balance is used first, second and so on",
      cell: ({ balanceId }) => order.get(balanceId) ?? <span class="soft">none</span>,
    },
    {
      head: "Pack",
      cell: ({ balanceId, packName, packItemId, origin }) => (
        <div>
          <span title={balanceId}>{packName}</span>
          {origin == null ? null : <span class="soft sub">{ORIGINS[origin]}</span>}
          {packItemId === null ? null : <code class="soft sub">{packItemId}</code>}
        </div>
      ),
    },
    {
      head: "Left",
      kind: "number",
      cell: ({ remaining, initial, unit }) => (
        <div>
          <AmountText value={remaining} unit={unit} />
          <span class="soft sub">of {amountText(initial, unit)}</span>
        </div>
      ),
    },
    {
      head: "Held",
      kind: "number",
      cell: ({ balanceId, unit }) => <AmountText value={heldOf(balanceId)} unit={unit} />,
    },
    { head: "Expires", cell: ({ expiresAt }) => <TimeOr at={expiresAt} none="never" /> },
    { head: "Status", cell: ({ status }) => <span class={`tag ${STATUS_KINDS[status]}`}>{status}</span> },
    path === null ? null : {
      head: "Actions",
      kind: "actions",
      cell: (balance) => <BalanceActions user={path} balance={balance} />,
    },
  ];
}

function BalanceActions({ user, balance }: { user: string; balance: CreditBalance }) {
  const { balanceId, status, expiresAt, origin } = balance;
  const endsWithPlan = origin === "plan" || origin === "rollover";
  if (status === "revoked") return <span class="soft">none</span>;
  const path = `${user}/balances/${encodeURIComponent(balanceId)}`;
  return (
    <div>
      {expiresAt === null || endsWithPlan
        ? null
        : <a id={`extend-${balanceId}`} href={`${path}/extend`}>Extend</a>}
      <a id={`revoke-${balanceId}`} href={`${path}/revoke`}>Revoke</a>
    </div>
  );
}

function Holds(
  { request, subject: { app, user }, usage: { holds, hasMoreHolds, groups, balances } }: Part,
) {
  if (holds.length === 0) {
    return <p class="empty">No open holds</p>;
  }
  const labels = new Map(groups.map(({ groupId, label }) => [groupId, label]));
  const packs = new Map(balances.map(({ balanceId, packName }) => [balanceId, packName]));
  const nameOf = (from: ShownHold["amounts"][number]) =>
    "groupId" in from
      ? labels.get(from.groupId) ?? from.groupId
      : `credits of ${packs.get(from.balanceId) ?? from.balanceId}`;
  return (
    <>
      <Table
        rows={holds}
        idOf={({ reservationId }) => reservationId}
        columns={[
          { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            head: "Event type",
            cell: ({ event, reservationId }) => (
              <div>
                {event}
                <code class="soft sub">{reservationId}</code>
              </div>
            ),
          },
          holds.some(({ heldFor }) => heldFor !== undefined)
            ? {
              head: "User",
              cell: ({ reservationId, heldFor = user.userId }) => (
                <a id={`held-for-${reservationId}`} href={userPath(app, heldFor)}>{heldFor}</a>
              ),
            }
            : null,
          {
            head: "Held",
            cell: ({ amounts }) =>
              amounts.length === 0 ? <span class="soft">none</span> : (
                <ul class="plain">
                  {amounts.map((held) => (
                    <li>
                      <AmountText value={held.amount} unit={held.unit} /> of {nameOf(held)}
                    </li>
                  ))}
                </ul>
              ),
          },
          { head: "Expires", cell: ({ expiresAt }) => <Time at={expiresAt} /> },
          mayMake(request.session, release)
            ? {
              head: "Actions",
              kind: "actions",
              cell: ({ reservationId }) => (
                <a
                  id={`release-${reservationId}`}
                  href={`${userPath(app, user.userId)}/holds/${encodeURIComponent(reservationId)}/release`}
                >
                  Release
                </a>
              ),
            }
            : null,
        ]}
      />
      {hasMoreHolds ? <p class="hint">Shows the newest {holds.length}.</p> : null}
    </>
  );
}
