// The cards of a user's page with records: the credit ledger, the IDs and the consent.

import { type Scope, SCOPES } from "./people_actions.tsx";
import type { UserSubject } from "../parts/subject.tsx";
import type { AppMode } from "../parts/ask.ts";
import { Ago, AmountText } from "../parts/format.tsx";
import { appPath, segmentOf, userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest } from "../parts/page_context.ts";
import type { CurrentUsage } from "./user_usage.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import type { listLedger } from "../../contract/credits.ts";
import { isOptedOut } from "../../contract/privacy.ts";

/** Whether a user opted out, by scope. */
export type Consents = Readonly<Record<Scope, boolean>>;

/** Reads the scopes that a user opted out of. */
export async function readConsents({ ask }: PageRequest, { app, user }: UserSubject): Promise<Consents> {
  const entries = await Promise.all(
    SCOPES.map(async (scope) => {
      const answer = await ask.app(app, isOptedOut, { distinctId: user.userId, scope });
      return [scope, answer.ok && answer.data.optedOut] as const;
    }),
  );
  return Object.fromEntries(entries) as Record<Scope, boolean>;
}

type LedgerEntry = AnswerOf<typeof listLedger>["entries"][number];

const LEDGER_REASONS: Readonly<Record<LedgerEntry["reason"], string>> = {
  event_committed: "used",
  reservation_held: "held",
  reservation_released: "released",
  reservation_expired: "hold expired",
  grant: "granted",
  admin_adjust: "adjusted",
  merged_from_alias: "merged from another ID",
  merge_dedupe: "duplicate removed by a merge",
};

/** Changes of credits, with the balances that they changed. */
export interface Ledger {
  readonly entries: readonly LedgerEntry[];
  readonly balances: CurrentUsage["balances"];
}

/** The newest changes of the user's credits. */
export function LedgerCard({ subject: { app, user }, ledger: { entries, balances }, now }: {
  subject: UserSubject;
  ledger: Ledger;
  now: number;
}) {
  return (
    <section class="card" aria-labelledby="ledger">
      <div class="head">
        <h2 id="ledger">Credit ledger</h2>
        {entries.length === 0 ? null : <a href={`${userPath(app, user.userId)}/ledger`}>Whole ledger</a>}
      </div>
      {entries.length === 0
        ? <p class="empty">No credit changes yet</p>
        : <LedgerTable app={app} entries={entries} balances={balances} now={now} />}
    </section>
  );
}

/** Changes of credits, newest first. */
export function LedgerTable({ app, entries, balances, now }: Ledger & { app: AppMode; now: number }) {
  const units = new Map(balances.map(({ balanceId, unit }) => [balanceId, unit]));
  const names = new Map(balances.map(({ packId, packName }) => [packId, packName]));
  return (
    <Table
      rows={entries}
      columns={[
        { head: "Time", cell: ({ occurredAt }) => <Ago at={occurredAt} now={now} /> },
        {
          head: "Change",
          kind: "number",
          cell: ({ balanceId, delta }) => (
            <div>
              {delta > 0 ? "+" : ""}
              <AmountText value={delta} unit={units.get(balanceId)} />
            </div>
          ),
        },
        {
          head: "Reason",
          cell: ({ reason, eventId, reservationId }) => {
            const cause = eventId ?? reservationId;
            return (
              <div>
                {LEDGER_REASONS[reason]}
                {cause === null
                  ? null
                  : (
                    <a class="sub" href={`${appPath(app)}/search?${new URLSearchParams({ q: cause })}`}>
                      <code>{cause}</code>
                    </a>
                  )}
              </div>
            );
          },
        },
        {
          head: "Pack",
          cell: ({ balanceId, packId }) => <span title={balanceId}>{names.get(packId) ?? packId}</span>,
        },
        { head: "Notes", cell: ({ notes }) => notes ?? "" },
      ]}
    />
  );
}

/** The canonical ID and the aliases of the user. */
export function IdsCard({ subject: { app, user } }: { subject: UserSubject }) {
  return (
    <section class="card" aria-labelledby="ids">
      <h2 id="ids">IDs</h2>
      <dl class="facts">
        <dt>Canonical</dt>
        <dd>
          <code>{user.userId}</code>
        </dd>
        <dt>Aliases</dt>
        <dd>
          {user.aliases.length === 0 ? <span class="soft">none</span> : (
            <ul class="plain">
              {user.aliases.map((alias) => (
                <li>
                  <code>{alias}</code>{" "}
                  <a href={`${userPath(app, user.userId)}/merges/${segmentOf(alias)}`}>
                    Merge report
                  </a>
                </li>
              ))}
            </ul>
          )}
        </dd>
      </dl>
    </section>
  );
}

/** The consent of the user by scope. */
export function ConsentCard(
  { request, subject: { app, user }, consents }: {
    request: PageRequest;
    subject: UserSubject;
    consents: Consents;
  },
) {
  const base = userPath(app, user.userId);
  return (
    <section class="card" aria-labelledby="consent">
      <h2 id="consent">Consent</h2>
      <Table
        rows={SCOPES}
        columns={[
          { head: "Scope", cell: (scope) => scope.replaceAll("_", " ") },
          {
            head: "Status",
            cell: (scope) =>
              consents[scope]
                ? <span class="tag warn">opted out</span>
                : <span class="tag good">opted in</span>,
          },
          mayChange(request.session)
            ? {
              head: "Actions",
              kind: "actions",
              cell: (scope) => {
                const isOut = consents[scope];
                return (
                  <a href={`${base}/${isOut ? "opt-in" : "opt-out"}?scope=${scope}`}>
                    {isOut ? "Opt in" : "Opt out"}
                  </a>
                );
              },
            }
            : null,
        ]}
      />
    </section>
  );
}
