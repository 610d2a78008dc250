// What is done to a user's subscriptions: another plan, quotas of their own, the end.

import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { type Act, actAt } from "../parts/action.tsx";
import { amountText, timeLabel } from "../parts/format.tsx";
import { type Field, numberIn, textIn, timeField, timeIn, type Values } from "../parts/form.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { planName, planOf, readCatalog, type ShownCatalog } from "./catalog_actions.ts";
import { aboutUser, placeOfUser, refusedPage, type UserSubject } from "../parts/subject.tsx";

interface PlanSubject extends UserSubject {
  readonly catalog: ShownCatalog;
  /** Every active subscription, the one in force first. */
  readonly rows: readonly Row[];
}

/** An active subscription, by what names it in calls. */
interface Row {
  readonly subscriptionId: string;
  readonly planId: string;
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly endsAt: string | null;
}

async function aboutPlan(request: PageRequest): Promise<PlanSubject | Shown> {
  const subject = await aboutUser(request);
  if (!("user" in subject)) return subject;
  const { subscription, duplicates } = subject.user;
  const rows = [...subscription === null ? [] : [subscription], ...duplicates];
  return { ...subject, rows, catalog: await readCatalog(request, subject.app) };
}

async function aboutActive(request: PageRequest): Promise<PlanSubject | Shown> {
  const subject = await aboutPlan(request);
  if (!("rows" in subject) || subject.rows.length > 0) return subject;
  const message = "This user has no active subscription. Change the plan to give them one.";
  return refusedPage({ code: "not_found", message }, "No subscription");
}

const NEW_ROW = "new";

function nameOfRow({ provider, externalId, planId }: Row, catalog: ShownCatalog): string {
  const sold = provider === null ? "default" : `${provider} ${externalId}`;
  return `${planName(catalog, planId)} (${sold})`;
}

function rowField({ rows, catalog }: PlanSubject, allowsNew: boolean): Field {
  const hasDefault = rows.some(({ provider }) => provider === null);
  const options = rows.map((row) => ({ value: row.subscriptionId, text: nameOfRow(row, catalog) }));
  if (allowsNew && !hasDefault) options.push({ value: NEW_ROW, text: "A new one, sold by nobody (default)" });
  return {
    name: "row",
    label: "Subscription",
    kind: options.length === 1 ? "fixed" : "select",
    value: options[0]?.value ?? NEW_ROW,
    options,
  };
}

function rowOf({ rows }: PlanSubject, values: Values): Row | null {
  return rows.find(({ subscriptionId }) => subscriptionId === values["row"]) ?? null;
}

function idsOf(row: Row | null) {
  return { provider: row?.provider ?? undefined, externalId: row?.externalId ?? undefined };
}

function endText(at: string | null | undefined): string {
  return at === null || at === undefined ? "not set" : timeLabel(at);
}

const change: Act<PlanSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/plan",
  title: "Change plan",
  about: async (request) => {
    const subject = await aboutPlan(request);
    if (!("rows" in subject) || onOffer(subject.catalog).length > 0) return subject;
    const message = "The catalog has no plan on offer. Add one to it first.";
    return refusedPage({ code: "not_found", message }, "No plan");
  },
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user }) => `For ${user.userId}.`,
  fields: (subject) => {
    const { catalog, rows } = subject;
    const present = rows[0] ?? null;
    const offered = onOffer(catalog);
    return [
      rowField(subject, true),
      {
        name: "planId",
        label: "Plan",
        kind: "select",
        value: offered.find(({ id }) => id !== present?.planId)?.id ?? "",
        options: offered.map(({ id, name }) => ({ value: id, text: name })),
      },
      {
        name: "endsAt",
        label: "Ends",
        kind: "time",
        value: timeField(present?.endsAt ?? null),
        hint: "Leave it empty for no end. An end that is set already goes where this is empty.",
      },
    ];
  },
  call: (subject, values) => ({
    id: "upsertSubscription",
    members: {
      userId: subject.user.userId,
      planId: values["planId"],
      ...idsOf(rowOf(subject, values)),
      endsAt: timeIn(values["endsAt"] ?? ""),
    },
  }),
  preview: (_, subject, values) => {
    const { user, catalog, rows } = subject;
    const plan = planOf(catalog, values["planId"] ?? "");
    if (plan === null) return [{ field: "planId", message: "The catalog has this plan no more" }];
    const row = rowOf(subject, values);
    if (row === null && values["row"] !== NEW_ROW) {
      return [{ field: "row", message: "This subscription is not active any more" }];
    }
    const others = rows.filter((other) => other !== row);
    const isNew = row?.planId !== plan.id;
    const custom = user.subscription?.subscriptionId === row?.subscriptionId
      ? user.subscription?.customLimits ?? null
      : null;
    return {
      sentences: [
        isNew
          ? `${user.userId} is on ${plan.name} from now on. ${policyText(plan, rows[0] === undefined)}`
          : `${user.userId} stays on ${plan.name}, with the usage they have.`,
        ...isNew && custom !== null ? ["Their custom limits go: they belong to the plan before."] : [],
        ...others.map((other) => strongerText(plan, other, catalog)),
      ],
      changes: [
        { what: "Plan", before: row === null ? "none" : planName(catalog, row.planId), after: plan.name },
        { what: "Ends", before: endText(row?.endsAt), after: endText(timeIn(values["endsAt"] ?? "")) },
      ],
      ground: { plan, row, others },
      verb: "Change the plan",
    };
  },
  done: ({ user, catalog }, values) => {
    return `${user.userId} is on ${planName(catalog, values["planId"] ?? "")}.`;
  },
};

function onOffer({ plans = [] }: ShownCatalog): readonly PlanDocument[] {
  return plans.filter(({ archived }) => archived !== true);
}

function policyText({ onPlanChange = "carry" }: PlanDocument, isFirst: boolean): string {
  if (isFirst) return "Usage begins at 0.";
  switch (onPlanChange) {
    case "carry":
      return "What they used of limits that both plans have is carried over.";
    case "reset":
      return "Its limits begin at 0.";
    case "block":
      return "Its limits are full until the next period begins.";
  }
}

function strongerText(plan: PlanDocument, other: Row, catalog: ShownCatalog): string {
  const theirs = planOf(catalog, other.planId);
  const name = nameOfRow(other, catalog);
  return theirs !== null && theirs.rank > plan.rank
    ? `The subscription ${name} stays active and ranks higher, so it goes on deciding.`
    : `The subscription ${name} stays active beside it.`;
}

const limits: Act<PlanSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/limits",
  title: "Custom limits",
  about: async (request) => {
    const subject = await aboutActive(request);
    if (!("rows" in subject) || planOf(subject.catalog, planIdOf(subject)) !== null) return subject;
    const message = "The catalog has the plan of this user no more.";
    return refusedPage({ code: "not_found", message }, "No plan");
  },
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user, catalog, ...subject }) =>
    `Quotas for ${user.userId} alone, in place of those of ${
      planName(catalog, planIdOf({ user, catalog, ...subject }))
    }.`,
  fields: (subject) =>
    groupsOf(subject).map((group) => {
      const custom = customOf(subject)[group.id];
      return {
        name: `customLimits.${group.id}`,
        label: group.label,
        kind: "number",
        value: custom === undefined ? "" : String(custom.quota),
        hint: `The plan gives ${amountText(group.quota, group.unit)}. Leave it empty for that.${
          group.unit === "cents" ? " In cents." : ""
        }`,
      };
    }),
  call: (subject, values) => ({
    id: "upsertSubscription",
    members: {
      userId: subject.user.userId,
      planId: planIdOf(subject),
      ...idsOf(subject.rows[0] ?? null),
      // Left out, an end that is set would go.
      endsAt: subject.user.subscription?.endsAt ?? undefined,
      customLimits: limitsOf(subject, values),
    },
  }),
  preview: (_, subject, values) => {
    const now = customOf(subject);
    const then = limitsOf(subject, values);
    const changes = groupsOf(subject).flatMap(({ id, label, unit, quota }) => {
      const [before, after] = [now[id], then[id]].map((custom) =>
        custom === undefined
          ? `${amountText(quota, unit)}, as the plan says`
          : amountText(custom.quota as number, unit)
      ) as [string, string];
      return before === after ? [] : [{ what: label, before, after }];
    });
    if (changes.length === 0) {
      return [{ field: null, message: "Nothing changes: these quotas hold already." }];
    }
    return {
      sentences: [
        `${subject.user.userId} has these quotas at once. What is used stays used.`,
        "They go when the plan changes.",
      ],
      changes,
      ground: { subscription: subject.user.subscription },
      verb: "Set the limits",
    };
  },
  done: ({ user }) => `${user.userId} has the new limits.`,
};

function planIdOf({ rows }: PlanSubject): string {
  return rows[0]?.planId ?? "";
}

function groupsOf(subject: PlanSubject) {
  return planOf(subject.catalog, planIdOf(subject))?.limits ?? [];
}

function customOf({ user }: PlanSubject): Readonly<Record<string, { readonly quota: number }>> {
  return user.subscription?.customLimits ?? {};
}

function limitsOf(subject: PlanSubject, values: Values): Record<string, { quota: number | string }> {
  return Object.fromEntries(
    groupsOf(subject).flatMap(({ id }) => {
      const quota = numberIn(values[`customLimits.${id}`] ?? "");
      return quota === undefined ? [] : [[id, { quota }]];
    }),
  );
}

const cancel: Act<PlanSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/cancel",
  title: "Cancel a subscription",
  about: aboutActive,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user }) => `Of ${user.userId}. A payment provider is told nothing: cancel there too.`,
  fields: (subject) => [
    rowField(subject, false),
    { name: "endsAt", label: "Ends", kind: "time", hint: "Leave it empty to end it now." },
    { name: "reason", label: "Reason", kind: "long", hint: "For the history." },
  ],
  call: (subject, values) => ({
    id: "cancelSubscription",
    members: {
      userId: subject.user.userId,
      ...idsOf(rowOf(subject, values)),
      endsAt: timeIn(values["endsAt"] ?? ""),
      reason: textIn(values["reason"] ?? ""),
    },
  }),
  preview: (_, subject, values) => {
    const { user, catalog, rows } = subject;
    const row = rowOf(subject, values);
    if (row === null) return [{ field: "row", message: "This subscription is not active any more" }];
    const at = timeIn(values["endsAt"] ?? "");
    const others = rows.filter((other) => other !== row).map((other) => nameOfRow(other, catalog));
    return {
      sentences: [
        `The subscription ${nameOfRow(row, catalog)} of ${user.userId} ends ${
          at === undefined ? "now" : `at ${timeLabel(at)}`
        }.`,
        others.length === 0
          ? "No other one is active: then credits alone pay."
          : `Still active: ${others.join(", ")}. The best plan of them takes over.`,
        "Changing the plan again brings the subscription back, with the usage it had.",
      ],
      changes: [{ what: "Ends", before: endText(row.endsAt), after: at === undefined ? "now" : endText(at) }],
      ground: { row, others },
      verb: "Cancel the subscription",
    };
  },
  done: (subject, values) => {
    const row = rowOf(subject, values);
    return row === null ? "It is canceled." : `${nameOfRow(row, subject.catalog)} is canceled.`;
  },
};

/** The acts on subscriptions. */
export const SUBSCRIPTION_ACTS = [actAt(change), actAt(limits), actAt(cancel)];
