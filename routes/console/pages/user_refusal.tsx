// The last refusal of a user, at the top of the page: what was refused and why, what would help, and a reply to copy.

import type { Help } from "../../../src/domain/metering/what_helps.ts";
import { Ago } from "../parts/format.tsx";
import {
  helpFor,
  HelpList,
  type Now,
  nowOfRefused,
  type Refused,
  replyText,
  type Wait,
  waitsOf,
} from "../parts/help.tsx";
import { userPath } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { UserSubject } from "../parts/subject.tsx";
import { readRefusals } from "./user_activity.tsx";
import { REASONS, type ShownRefusals } from "./refusals.tsx";
import { explain } from "../../contract/metering.ts";
import { getUser } from "../../contract/usage.ts";

const SHOWN_MS = 7 * 86_400_000;
const NO_HELP: Help = { plans: [], packs: [] };

/** The last refusal with what would help. */
interface LastRefusal {
  readonly row: ShownRefusals;
  readonly refused: Refused;
  /** The user whose plan refused the call: the user, or one above. */
  readonly refuser: UserSubject;
  readonly help: Help;
  readonly waits: readonly Wait[];
}

/** Reads the last refusal of the last 7 days; null for none, and where a call fails. */
export async function readRefusal(
  request: PageRequest,
  subject: UserSubject,
  now: number,
): Promise<LastRefusal | null> {
  const [row] = await readRefusals(request, subject, "1");
  if (row === undefined || Date.parse(row.lastAt) < now - SHOWN_MS) return null;
  const { event, reasons, groupIds } = row;
  const { userId } = subject.user;
  const { refusedBy = [userId] } = row;
  const explained = await request.ask.app(subject.app, explain, { userId, event });
  if (!explained.ok) return null;
  const { allowed, levels = [] } = explained.data;
  const [only, ...others] = refusedBy;
  // Where several users refuse, what helps one of them is not enough.
  const refuser = only === undefined || others.length > 0
    ? null
    : only === userId
    ? { subject, explanation: explained.data }
    : await readRefuser(request, subject, only, event);
  const groups = [{ userId, groups: explained.data.groups }, ...levels].flatMap((level) =>
    refusedBy.includes(level.userId) ? level.groups.filter(({ groupId }) => groupIds.includes(groupId)) : []
  );
  const refused = {
    event,
    reasons,
    groups,
    explanation: { ...refuser?.explanation ?? explained.data, allowed },
  };
  if (refuser === null) return { row, refused, refuser: subject, help: NO_HELP, waits: [] };
  return {
    row,
    refused,
    refuser: refuser.subject,
    help: helpFor(request, refuser.subject, refused),
    waits: waitsOf(refuser.subject, groups, now),
  };
}

/** Reads a user above that refused, and what its own plan says of the call; null where a call fails. */
async function readRefuser({ ask }: PageRequest, { app }: UserSubject, userId: string, event: string) {
  const [read, explained] = await Promise.all([
    ask.app(app, getUser, { userId }),
    ask.app(app, explain, { userId, event }),
  ]);
  return read.ok && explained.ok ? { subject: { app, user: read.data }, explanation: explained.data } : null;
}

/** The banner. */
export function RefusalBanner(
  { request, subject, refusal: { row, refused, refuser, help, waits }, now }: {
    request: PageRequest;
    subject: UserSubject;
    refusal: LastRefusal;
    now: number;
  },
) {
  const { app, user: { userId } } = subject;
  const { event, reasons, lastAt, count, refusedBy = [] } = row;
  const { groups } = refused;
  const state = nowOfRefused(refused);
  const others = refusedBy.filter((id) => id !== userId);
  return (
    <section
      class={state === "refused" || state === "unless_capped" ? "note bad" : "note"}
      aria-labelledby="last-refusal"
    >
      <h2 id="last-refusal">
        {event} was refused <Ago at={lastAt} now={now} />
      </h2>
      <p>
        {sentence(reasons.map((reason) => REASONS[reason]).join(", "))}
        {groups.length === 0 ? "" : `: ${groups.map(({ label }) => label).join(", ")}`}.{" "}
        {count === 1 ? "" : `${count} calls within an hour. `}
        <NowText state={state} runsPath={`${userPath(app, userId)}/runs`} />
      </p>
      {others.length === 0 ? null : (
        <p>
          Refused by {others.map((id, place) => (
            <>
              {place === 0 ? "" : ", "}
              <a href={userPath(app, id)}>{id}</a>
            </>
          ))}, above this user in the account.
        </p>
      )}
      {state !== "refused"
        ? null
        : <HelpList request={request} subject={refuser} help={help} waits={waits} />}
      <details class="more" id="reply">
        <summary>Reply to the customer</summary>
        <label class="visually-hidden" for="reply-text">Reply to the customer</label>
        <textarea id="reply-text" rows={4} readonly>{replyText(refused, help, waits)}</textarea>
        <button type="button" data-copies="reply-text" hidden>Copy</button>
      </details>
    </section>
  );
}

/** Whether the call would be allowed now, with the page of what explain does not check. */
function NowText({ state, runsPath }: { state: Now; runsPath: string }) {
  switch (state) {
    case "refused":
      return null;
    case "allowed":
      return <>A call of this type with a count of 1 is allowed now.</>;
    case "outside_its_run":
      return (
        <>
          A call of this type with a count of 1 is allowed now, but not in a run whose limit is used up:{" "}
          <a href={runsPath}>runs</a>.
        </>
      );
    case "unless_capped":
      return (
        <>
          The limits of this user have room for a call of this type with a count of 1, but the cap may still
          refuse it: <a href="/console/system">caps of workspaces</a>.
        </>
      );
  }
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
