// The sheets of a user's page that are records: the ledger, the ids, and what the user opted out of.

import type { LedgerEntry } from "../../../src/client/wire_types.ts";
import type { CreditBalance } from "../../../src/client/wire_types.ts";
import { type Scope, SCOPES } from "./people_actions.tsx";
import type { UserSubject } from "../parts/subject.tsx";
import { AmountText, Time } from "../parts/format.tsx";
import { userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest } from "../parts/page_context.ts";
import type { Standing } from "./user_usage.tsx";

/** Which scopes a user has opted out of. */
export type Consents = Readonly<Record<Scope, boolean>>;

/** Reads what a user opted out of. */
export async function readConsents({ ask }: PageRequest, { app, user }: UserSubject): Promise<Consents> {
  const entries = await Promise.all(
    SCOPES.map(async (scope) => {
      const asked = { distinctId: user.userId, scope };
      const answer = await ask.app<{ optedOut: boolean }>(app, "isOptedOut", asked);
      return [scope, answer.ok && answer.data.optedOut] as const;
    }),
  );
  return Object.fromEntries(entries) as Record<Scope, boolean>;
}

const LEDGER_WORDS: Readonly<Record<LedgerEntry["reason"], string>> = {
  event_committed: "used",
  reservation_held: "held",
  reservation_released: "released",
  reservation_expired: "hold expired",
  grant: "granted",
  admin_adjust: "adjusted",
  merged_from_alias: "came with a merge",
  merge_dedupe: "two copies joined",
};

/** What moved the user's credits. */
export function LedgerSheet({ subject: { app, user }, entries, standing }: {
  subject: UserSubject;
  entries: readonly LedgerEntry[];
  standing: Standing;
}) {
  return (
    <section class="sheet" aria-labelledby="ledger">
      <div class="head">
        <h2 id="ledger">Credit ledger</h2>
        {entries.length === 0 ? null : <a href={`${userPath(app, user.userId)}/ledger`}>Whole ledger</a>}
      </div>
      {entries.length === 0
        ? <p class="empty">No credits have moved yet.</p>
        : <LedgerTable entries={entries} balances={standing.balances} />}
    </section>
  );
}

/** Movements of credits, newest first. */
export function LedgerTable({ entries, balances }: {
  entries: readonly LedgerEntry[];
  balances: readonly CreditBalance[];
}) {
  const units = new Map(balances.map(({ balanceId, unit }) => [balanceId, unit]));
  const names = new Map(balances.map(({ packId, packName }) => [packId, packName]));
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>When</th>
          <th class="number">Moved</th>
          <th>Why</th>
          <th>Pack</th>
          <th>Event or reservation</th>
          <th>Notes</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => {
          const unit = units.get(entry.balanceId);
          return (
            <tr>
              <td data-label="When">
                <Time at={entry.occurredAt} />
              </td>
              <td data-label="Moved" class="number">
                <div>
                  {entry.delta > 0 ? "+" : ""}
                  {unit === undefined
                    ? <AmountText value={entry.delta} />
                    : <AmountText value={entry.delta} unit={unit} />}
                </div>
              </td>
              <td data-label="Why">{LEDGER_WORDS[entry.reason]}</td>
              <td data-label="Pack">
                <span title={entry.balanceId}>{names.get(entry.packId) ?? entry.packId}</span>
              </td>
              <td data-label="Event or reservation">
                {entry.eventId === null && entry.reservationId === null
                  ? <span class="soft">none</span>
                  : <code>{entry.eventId ?? entry.reservationId}</code>}
              </td>
              <td data-label="Notes">{entry.notes ?? ""}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** The ids that stand for the user. */
export function IdsSheet({ subject: { app, user } }: { subject: UserSubject }) {
  return (
    <section class="sheet" aria-labelledby="ids">
      <h2 id="ids">Ids</h2>
      <dl class="facts">
        <dt>Canonical</dt>
        <dd>
          <code>{user.userId}</code>
        </dd>
        <dt>Aliases</dt>
        <dd>
          {user.aliases.length === 0
            ? <span class="soft">none: no other id was merged into this one</span>
            : (
              <ul class="plain">
                {user.aliases.map((alias) => (
                  <li>
                    <code>{alias}</code>{" "}
                    <a href={`${userPath(app, user.userId)}/merges/${encodeURIComponent(alias)}`}>
                      What its merge moved
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

/** What the user opted out of. */
export function ConsentSheet(
  { request, subject: { app, user }, consents }: {
    request: PageRequest;
    subject: UserSubject;
    consents: Consents;
  },
) {
  const base = userPath(app, user.userId);
  return (
    <section class="sheet" aria-labelledby="consent">
      <h2 id="consent">Consent</h2>
      <table class="stack">
        <thead>
          <tr>
            <th>Scope</th>
            <th>State</th>
            {mayChange(request.session) ? <th class="acts">Acts</th> : null}
          </tr>
        </thead>
        <tbody>
          {Object.entries(consents).map(([scope, isOut]) => (
            <tr>
              <td data-label="Scope">{scope.replaceAll("_", " ")}</td>
              <td data-label="State">
                <span class={isOut ? "tag warn" : "tag good"}>{isOut ? "opted out" : "in"}</span>
              </td>
              {mayChange(request.session)
                ? (
                  <td class="acts" data-label="Acts">
                    <a href={`${base}/${isOut ? "opt-in" : "opt-out"}?scope=${scope}`}>
                      {isOut ? "Opt in" : "Opt out"}
                    </a>
                  </td>
                )
                : null}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
