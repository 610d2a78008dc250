// Where a user stands now: limits as bars, credits, open holds. This part of the page is asked for again every few
// seconds, and comes anew only when it has changed.

import { createHash } from "node:crypto";
import type { CreditBalance } from "../../../src/client/wire_types.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { refusedPage, type UserSubject } from "../parts/subject.tsx";
import { AmountText, amountText, Time, TimeOr } from "../parts/format.tsx";
import { Meter, type MeteredGroup } from "../parts/meter.tsx";
import { userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest, type Shown } from "../parts/page_context.ts";

/** A hold as the admin API lists it. */
export interface ShownHold {
  readonly reservationId: string;
  readonly event: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly amounts: readonly {
    readonly groupId?: string;
    readonly balanceId?: string;
    readonly unit: Unit;
    readonly amount: number;
  }[];
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** What is in force for a user now. */
export interface Standing {
  readonly subscription: { readonly planId: string; readonly planName: string } | null;
  readonly groups: readonly MeteredGroup[];
  /** Those that can be spent, in the order of use. */
  readonly payers: readonly { readonly balanceId: string }[];
  readonly balances: readonly CreditBalance[];
  readonly holds: readonly ShownHold[];
  readonly hasMoreHolds: boolean;
}

/** No event has this name: asked about it, explain shows every group and decides nothing. */
const NO_EVENT = "-";

/** Reads where a user stands. */
export async function readStanding(
  { ask }: PageRequest,
  { app, user }: UserSubject,
): Promise<Standing | Shown> {
  const { userId } = user;
  const [explained, listed, held] = await Promise.all([
    ask.app<{
      readonly subscription: Standing["subscription"];
      readonly groups: readonly MeteredGroup[];
      readonly credits: Standing["payers"];
    }>(app, "explain", { userId, event: NO_EVENT }),
    ask.app<{ credits: CreditBalance[] }>(app, "listCredits", { userId, includeExpired: "true" }),
    ask.admin<{ holds: ShownHold[]; hasMore: boolean }>("listHolds", {
      appId: app.appId,
      mode: app.mode,
      userId,
    }),
  ]);
  // Somebody who is just being erased or merged may be refused; the page says so, and is asked for again.
  if (!explained.ok) return refusedPage(explained.error);
  if (!listed.ok) return refusedPage(listed.error);
  if (!held.ok) return refusedPage(held.error);
  return {
    subscription: explained.data.subscription,
    groups: explained.data.groups,
    payers: explained.data.credits,
    balances: listed.data.credits,
    holds: held.data.holds,
    hasMoreHolds: held.data.hasMore,
  };
}

const POLL = "every 2s";

/** The marks of what a browser has: one for each bar, and one for all the rest. */
function marksOf({ groups, balances, holds }: Standing): readonly string[] {
  return [...groups, [balances, holds]].map((part) =>
    createHash("sha256").update(JSON.stringify(part)).digest("base64url").slice(0, 8)
  );
}

/** Whether a browser has this already. */
export function hasSeen(standing: Standing, seen: string | null): boolean {
  return seen === marksOf(standing).join(".");
}

/**
 * The part of the page.
 *
 * @param seen what the browser had before; bars that changed since then say so for a moment
 */
export function StandingPart(
  { request, subject, standing, seen }: {
    request: PageRequest;
    subject: UserSubject;
    standing: Standing;
    seen: string | null;
  },
) {
  const { app, user } = subject;
  const { groups } = standing;
  const marks = marksOf(standing);
  const before = seen?.split(".") ?? [];
  const isChanged = (place: number) => before.length === marks.length && before[place] !== marks[place];
  const path = `${userPath(app, user.userId)}/standing?seen=${marks.join(".")}`;
  return (
    <div id="standing" hx-get={path} hx-trigger={POLL} hx-swap="outerHTML">
      <section class="sheet" aria-labelledby="limits">
        <div class="head">
          <h2 id="limits">Limits</h2>
          <span class="soft is-live">live</span>
        </div>
        {groups.length === 0
          ? (
            <p class="empty">
              {standing.subscription === null
                ? "This user has no plan, so credits alone pay. Change the plan to give them one."
                : "The plan has no limits."}
            </p>
          )
          : (
            <div class="groups">
              {groups.map((group, place) => <Meter group={group} isChanged={isChanged(place)} />)}
            </div>
          )}
      </section>
      <section class="sheet" aria-labelledby="credits">
        <h2 id="credits">Credits</h2>
        <Balances request={request} subject={subject} standing={standing} />
      </section>
      <section class="sheet" aria-labelledby="holds">
        <h2 id="holds">Open holds</h2>
        <Holds request={request} subject={subject} standing={standing} />
      </section>
    </div>
  );
}

interface Part {
  readonly request: PageRequest;
  readonly subject: UserSubject;
  readonly standing: Standing;
}

const STATUS_KINDS = { active: "good", depleted: "", expired: "warn", revoked: "bad" } as const;

function Balances({ request, subject: { app, user }, standing: { balances, payers, holds } }: Part) {
  if (balances.length === 0) {
    return <p class="empty">This user has no credits. Grant a pack, and it shows here with what is left.</p>;
  }
  const order = new Map(payers.map(({ balanceId }, place) => [balanceId, place + 1]));
  const heldOf = (id: string) =>
    holds.flatMap(({ amounts }) => amounts).filter(({ balanceId }) => balanceId === id)
      .reduce((sum, { amount }) => sum + amount, 0);
  const path = (balance: CreditBalance) =>
    `${userPath(app, user.userId)}/balances/${encodeURIComponent(balance.balanceId)}`;
  const spendable = balances.filter(({ status }) => status === "active" || status === "depleted");
  const past = balances.filter((balance) => !spendable.includes(balance));
  const table = (rows: readonly CreditBalance[]) => (
    <table class="stack">
      <thead>
        <tr>
          <th title="Which balance pays first, second and so on">Pays</th>
          <th>Pack</th>
          <th class="number">Left</th>
          <th class="number">Held</th>
          <th>Expires</th>
          <th>State</th>
          {mayChange(request.session) ? <th class="acts">Acts</th> : null}
        </tr>
      </thead>
      <tbody>
        {rows.map((balance) => (
          <tr id={balance.balanceId}>
            <td data-label="Pays">{order.get(balance.balanceId) ?? <span class="soft">no</span>}</td>
            <td data-label="Pack">
              <div>
                <span title={balance.balanceId}>{balance.packName}</span>
                {balance.packItemId === null ? null : <code class="soft sub">{balance.packItemId}</code>}
              </div>
            </td>
            <td data-label="Left" class="number">
              <div>
                <AmountText value={balance.remaining} unit={balance.unit} />
                <span class="soft sub">of {amountText(balance.initial, balance.unit)}</span>
              </div>
            </td>
            <td data-label="Held" class="number">
              <AmountText value={heldOf(balance.balanceId)} unit={balance.unit} />
            </td>
            <td data-label="Expires">
              <TimeOr at={balance.expiresAt} none="never" />
            </td>
            <td data-label="State">
              <span class={`tag ${STATUS_KINDS[balance.status]}`}>{balance.status}</span>
            </td>
            {mayChange(request.session)
              ? (
                <td class="acts" data-label="Acts">
                  {balance.status === "revoked" ? <span class="soft">none</span> : (
                    <div>
                      {balance.expiresAt === null ? null : <a href={`${path(balance)}/extend`}>Extend</a>}
                      <a href={`${path(balance)}/revoke`}>Revoke</a>
                    </div>
                  )}
                </td>
              )
              : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
  return (
    <>
      {spendable.length === 0 ? <p class="empty">Nothing is left that can be spent.</p> : table(spendable)}
      {past.length === 0 ? null : (
        <details class="more" id="past-credits">
          <summary>{past.length === 1 ? "1 past balance" : `${past.length} past balances`}</summary>
          {table(past)}
        </details>
      )}
    </>
  );
}

function Holds(
  { request, subject: { app, user }, standing: { holds, hasMoreHolds, groups, balances } }: Part,
) {
  if (holds.length === 0) {
    return <p class="empty">Nothing is held: no reservation of this user is open.</p>;
  }
  const labels = new Map(groups.map(({ groupId, label }) => [groupId, label]));
  const packs = new Map(balances.map(({ balanceId, packName }) => [balanceId, packName]));
  const nameOf = ({ groupId, balanceId }: ShownHold["amounts"][number]) =>
    groupId === undefined
      ? `credits of ${packs.get(balanceId as string) ?? balanceId}`
      : labels.get(groupId) ?? groupId;
  return (
    <>
      <table class="stack">
        <thead>
          <tr>
            <th>Since</th>
            <th>Event</th>
            <th>Holds</th>
            <th>Expires</th>
            <th>Reservation</th>
            {mayChange(request.session) ? <th class="acts">Acts</th> : null}
          </tr>
        </thead>
        <tbody>
          {holds.map((hold) => (
            <tr id={hold.reservationId}>
              <td data-label="Since">
                <Time at={hold.createdAt} />
              </td>
              <td data-label="Event">{hold.event}</td>
              <td data-label="Holds">
                {hold.amounts.length === 0 ? <span class="soft">nothing</span> : (
                  <ul class="plain">
                    {hold.amounts.map((amount) => (
                      <li>
                        <AmountText value={amount.amount} unit={amount.unit} /> of {nameOf(amount)}
                      </li>
                    ))}
                  </ul>
                )}
              </td>
              <td data-label="Expires">
                <Time at={hold.expiresAt} />
              </td>
              <td data-label="Reservation">
                <code>{hold.reservationId}</code>
              </td>
              {mayChange(request.session)
                ? (
                  <td class="acts" data-label="Acts">
                    <a
                      href={`${userPath(app, user.userId)}/holds/${
                        encodeURIComponent(hold.reservationId)
                      }/release`}
                    >
                      Release
                    </a>
                  </td>
                )
                : null}
            </tr>
          ))}
        </tbody>
      </table>
      {hasMoreHolds ? <p class="hint">There are more; these are the newest {holds.length}.</p> : null}
    </>
  );
}
