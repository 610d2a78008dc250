// What would allow a refused call: plans and packs of the catalog, and waiting. Also the reply that support sends to the
// customer.

import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type CallForHelp, type Help, whatHelps } from "../../../src/domain/metering/what_helps.ts";
import { type Amount, amountOf } from "../../../src/domain/values/amount.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { grantCredits } from "../../contract/credits.ts";
import type { explain } from "../../contract/metering.ts";
import { amountText, comingText, durationText, momentText } from "./format.tsx";
import { userPath } from "./page.tsx";
import { mayChange, mayMake, type PageRequest } from "./page_context.ts";
import type { UserSubject } from "./subject.tsx";

type Explanation = AnswerOf<typeof explain>;
type Group = Explanation["groups"][number];

/** A refused call of a user. */
export interface Refused {
  readonly event: string;
  /** Undefined where it is unknown. */
  readonly metadata?: CallForHelp["metadata"];
  readonly reasons: CallForHelp["reasons"];
  /** The groups with too little left. */
  readonly groups: readonly Group[];
  /** What the call explain says of the same call now. */
  readonly explanation: Explanation;
}

/** Finds the plans and packs that would allow a call. */
export function helpFor(
  { ask }: PageRequest,
  { app, user }: UserSubject,
  { event, metadata, reasons, groups, explanation }: Refused,
): Help {
  const caller = ask.serving.registry.operatorOf(app.appId, app.mode);
  if (caller === null) return { plans: [], packs: [] };
  const needs = new Map<Unit, Amount>();
  for (const { unit, need } of explanation.groups) {
    if (need !== null) needs.set(unit, larger(needs.get(unit), amountOf(need)));
  }
  if (!needs.has("count")) needs.set("count", amountOf(1));
  return whatHelps(caller.realm.catalog, {
    event,
    metadata,
    reasons,
    needs,
    // Credits pay for a call without a group only where they cover the whole need of a unit.
    lacking: new Set(groups.length === 0 ? neededUnits(needs) : groups.map(({ unit }) => unit)),
    planId: explanation.subscription?.planId ?? null,
    seats: user.subscription?.quantity ?? 1,
    counts: new Map(explanation.groups.map(({ groupId, current }) => [groupId, amountOf(current)])),
  });
}

function neededUnits(needs: ReadonlyMap<Unit, Amount>): Unit[] {
  return [...needs].flatMap(([unit, need]) => need > 0n ? [unit] : []);
}

function larger(one: Amount | undefined, other: Amount): Amount {
  return one === undefined || other > one ? other : one;
}

/** When a limit of a user lets calls through again. */
export interface Wait {
  readonly label: string;
  /** The end of the running window; null for a limit that counts the last seconds or what is in flight. */
  readonly resetsAt: string | null;
  readonly text: string;
}

/** When limits let calls through again; without those that never do. */
export function waitsOf(
  { user: { counters, period } }: UserSubject,
  groups: readonly Group[],
  now: number,
): readonly Wait[] {
  const counterOf = new Map(counters.map((counter) => [counter.groupId, counter]));
  return groups.flatMap(({ groupId, label }): Wait[] => {
    const { window, period: own } = counterOf.get(groupId) ?? {};
    if (window !== undefined) {
      const text = window.type === "concurrent"
        ? "has room when calls in flight end"
        : `has room within ${durationText(window.seconds ?? 0)}`;
      return [{ label, resetsAt: null, text }];
    }
    const resetsAt = (own ?? period)?.end ?? null;
    return resetsAt === null ? [] : [{ label, resetsAt, text: `resets ${comingText(resetsAt, now)}` }];
  });
}

/** What would allow the call: waiting, plans, packs, with links for people who may do it. */
export function HelpList({ request, subject: { app, user }, help: { plans, packs }, waits }: {
  request: PageRequest;
  subject: UserSubject;
  help: Help;
  waits: readonly Wait[];
}) {
  if (plans.length + packs.length + waits.length === 0) return null;
  const base = userPath(app, user.userId);
  const { session } = request;
  const toPlan = mayChange(session) ? (id: string) => `${base}/plan?planId=${encodeURIComponent(id)}` : null;
  const toPack = mayMake(session, grantCredits)
    ? (id: string) => `${base}/grant?packId=${encodeURIComponent(id)}`
    : null;
  return (
    <dl class="facts">
      {waits.length === 0 ? null : (
        <>
          <dt>Waiting</dt>
          <dd>
            {waits.map(({ label, text }) => <div>{label} {text}</div>)}
          </dd>
        </>
      )}
      {plans.length === 0 ? null : (
        <>
          <dt>Plans with room</dt>
          <dd>
            <Names parts={plans} to={toPlan} />
          </dd>
        </>
      )}
      {packs.length === 0 ? null : (
        <>
          <dt>Credit packs</dt>
          <dd>
            <Names parts={packs} to={toPack} />
          </dd>
        </>
      )}
    </dl>
  );
}

function Names(
  { parts, to }: {
    parts: readonly { readonly id: string; readonly name: string }[];
    to: ((id: string) => string) | null;
  },
) {
  return (
    <>
      {parts.map(({ id, name }, place) => (
        <>
          {place === 0 ? "" : ", "}
          {to === null ? name : <a href={to(id)}>{name}</a>}
        </>
      ))}
    </>
  );
}

/** Whether a refused call would be allowed now, as far as explain knows. */
export type Now = "refused" | "allowed" | "outside_its_run" | "unless_capped";

/** Caps that no explanation checks. */
const CAPS: ReadonlySet<Refused["reasons"][number]> = new Set([
  "workspace_limit_reached",
  "test_quota_exceeded",
  "ai_budget_exceeded",
]);

/** What explain, which checks no caps and was asked about no run, says of a call that was refused before. */
export function nowOfRefused({ reasons, explanation: { allowed } }: Refused): Now {
  if (!allowed) return "refused";
  if (reasons.some((reason) => CAPS.has(reason))) return "unless_capped";
  return reasons.includes("run_limit_reached") ? "outside_its_run" : "allowed";
}

/** The end of the reply where the user's own limits have room now. */
const REPLIES: Readonly<Record<Exclude<Now, "refused">, string>> = {
  allowed: " It would be allowed now: please try again.",
  outside_its_run: " It would be allowed in a new run.",
  unless_capped: "",
};

/** The reply for the customer: what was refused and why, when it works again, and what would help. */
export function replyText(call: Refused, { plans, packs }: Help, waits: readonly Wait[]): string {
  const { event, reasons, groups, explanation: { subscription } } = call;
  const [main] = groups;
  const plan = subscription === null ? "" : ` of your plan ${subscription.planName}`;
  const why = main !== undefined && reasons.some((reason) => OF_QUOTA.has(reason))
    ? `the limit "${main.label}"${plan} was reached: ${amountText(main.current, main.unit)} of ${
      amountText(main.quota, main.unit)
    } are used`
    : reasons.map((reason) => CUSTOMER_REASONS[reason]).join(", and ");
  const [wait] = waits;
  const refused = `Your request (${event}) was not allowed because ${why}.`;
  const now = nowOfRefused(call);
  if (now !== "refused") return refused + REPLIES[now];
  const sentences = [
    refused,
    wait === undefined
      ? null
      : wait.resetsAt === null
      ? `The limit ${wait.text}.`
      : `The limit resets on ${momentText(wait.resetsAt)}.`,
    plans.length === 0
      ? null
      : `${plans.length === 1 ? "The plan" : "The plans"} ${listed(plans)} would allow it now.`,
    packs.length === 0 ? null : `Extra credits would allow it too: ${listed(packs)}.`,
  ];
  return sentences.filter((sentence) => sentence !== null).join(" ");
}

function listed(parts: readonly { readonly name: string }[]): string {
  const names = parts.map(({ name }) => name);
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

const OF_QUOTA: ReadonlySet<string> = new Set(["limit_reached", "reservation_headroom_exceeded"]);

/** Reasons as a customer reads them. */
const CUSTOMER_REASONS: Readonly<Record<CallForHelp["reasons"][number], string>> = {
  limit_reached: "a limit of your plan was reached",
  reservation_headroom_exceeded: "a limit of your plan was almost reached",
  member_limit_reached: "your own share of your account was used up",
  run_limit_reached: "the limit of its run was reached",
  rate_limit_reached: "there were too many requests in a short time",
  concurrency_limit_reached: "there were too many requests at once",
  no_subscription: "you have no active plan",
  unmatched_event: "your plan does not include it",
  unpriced_model: "the price of the model is not known",
  workspace_limit_reached: "our service reached a limit of its own",
  test_quota_exceeded: "our test system reached a limit of its own",
  ai_budget_exceeded: "our service reached its budget for models",
};
