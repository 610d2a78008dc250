// Actions on a user's subscriptions: change the plan, set custom limits, cancel.

import { featureText } from "./features.tsx";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { type Action, actionRoutes } from "../parts/action.tsx";
import type { Preview } from "../parts/action_pages.tsx";
import { amountText, durationText, timeLabel } from "../parts/format.tsx";
import { type Fault, type Field, numberIn, textIn, timeField, timeIn, type Values } from "../parts/form.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { planName, planOf, readCatalog, type ShownCatalog } from "../parts/catalog.ts";
import { loadUser, PageError, tabLocation, type UserSubject } from "../parts/subject.tsx";
import { cancelSubscription, upsertSubscription } from "../../contract/subscriptions.ts";

/** A user with the catalog. */
export interface PlanSubject extends UserSubject {
  readonly catalog: ShownCatalog;
  /** Every active subscription; the first is in force. */
  readonly rows: readonly Row[];
}

/** An active subscription. */
interface Row {
  readonly subscriptionId: string;
  readonly planId: string;
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly endsAt: string | null;
}

async function loadPlan(request: PageRequest): Promise<PlanSubject> {
  const subject = await loadUser(request);
  const { subscription, duplicateActiveSubscriptions } = subject.user;
  const others = duplicateActiveSubscriptions?.duplicates ?? [];
  const rows = [...subscription === null ? [] : [subscription], ...others];
  return { ...subject, rows, catalog: await readCatalog(request, subject.app) };
}

/** Reads a user with an active subscription. */
export async function loadActive(request: PageRequest): Promise<PlanSubject> {
  const subject = await loadPlan(request);
  if (subject.rows.length > 0) return subject;
  const message = "This user has no active subscription. Use “Change plan” to add one.";
  throw new PageError({ code: "not_found", message }, "No subscription");
}

const NEW_ROW = "new";

function nameOfRow({ provider, externalId, planId }: Row, catalog: ShownCatalog): string {
  const source = provider === null ? "no provider" : `${provider} ${externalId}`;
  return `${planName(catalog, planId)} (${source})`;
}

function rowField({ rows, catalog }: PlanSubject, allowsNew: boolean): Field {
  const hasDefault = rows.some(({ provider }) => provider === null);
  const options = rows.map((row) => ({ value: row.subscriptionId, text: nameOfRow(row, catalog) }));
  if (allowsNew && !hasDefault) options.push({ value: NEW_ROW, text: "New subscription (no provider)" });
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

/** What names a subscription to the API. */
export function idsOf(row: Row | null) {
  return { provider: row?.provider ?? undefined, externalId: row?.externalId ?? undefined };
}

function endText(at: string | null | undefined): string {
  return at === null || at === undefined ? "not set" : timeLabel(at);
}

const change: Action<PlanSubject, typeof upsertSubscription> = {
  path: "/console/apps/:appId/:mode/users/:userId/plan",
  title: "Change plan",
  load: async (request) => {
    const subject = await loadPlan(request);
    if (onOffer(subject.catalog).length > 0) return subject;
    const message = "The catalog has no active plan. Add one first.";
    throw new PageError({ code: "not_found", message }, "No plan");
  },
  location: tabLocation("/billing"),
  intro: ({ user }) => `For ${user.userId}.`,
  fields: changeFields,
  call: upsertSubscription,
  input: (subject, values) => ({
    userId: subject.user.userId,
    planId: values["planId"],
    ...idsOf(rowOf(subject, values)),
    endsAt: timeIn(values["endsAt"] ?? ""),
    trial: values["trial"] === "yes" ? true : undefined,
  }),
  preview: (_, subject, values) => previewChange(subject, values),
  done: ({ user, catalog }, values) => {
    return `${user.userId} is now on ${planName(catalog, values["planId"] ?? "")}.`;
  },
};

function changeFields(subject: PlanSubject): readonly Field[] {
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
      hint: "Leave empty for no end. An empty field removes a scheduled end.",
    },
    ...offered.some(({ trial }) => trial !== undefined) ? [TRIAL] : [],
  ];
}

const TRIAL: Field = {
  name: "trial",
  label: "Begin the trial of the plan",
  kind: "checkbox",
  hint: "A user may have the trial of each plan once, and not of a plan that the user has.",
};

function previewChange(subject: PlanSubject, values: Values): Preview | readonly Fault[] {
  const { user, catalog, rows } = subject;
  const plan = planOf(catalog, values["planId"] ?? "");
  if (plan === null) return [{ field: "planId", message: "This plan is no longer in the catalog" }];
  const row = rowOf(subject, values);
  if (row === null && values["row"] !== NEW_ROW) {
    return [{ field: "row", message: "This subscription is no longer active" }];
  }
  const others = rows.filter((other) => other !== row);
  const isNew = row?.planId !== plan.id;
  const own = user.subscription?.subscriptionId === row?.subscriptionId ? user.subscription : null;
  const customs = [["limits", own?.customLimits], ["features", own?.customFeatures]] as const;
  return {
    sentences: [
      isNew
        ? `${user.userId} changes to ${plan.name} at once. ${policyText(plan, rows[0] === undefined)}`
        : `${user.userId} stays on ${plan.name} and keeps the current usage.`,
      ...customs.flatMap(([what, custom]) =>
        isNew && custom != null ? [`The custom ${what} are removed: they belong to the previous plan.`] : []
      ),
      ...others.map((other) => strongerText(plan, other, catalog)),
    ],
    changes: [
      { what: "Plan", before: row === null ? "none" : planName(catalog, row.planId), after: plan.name },
      { what: "Ends", before: endText(row?.endsAt), after: endText(timeIn(values["endsAt"] ?? "")) },
      ...values["trial"] === "yes"
        ? [{ what: "Trial", before: "none", after: `${plan.trial?.days ?? 0} days` }]
        : [],
      ...featureChanges(row === null ? null : planOf(catalog, row.planId), plan),
    ],
    basis: { plan, row, others },
    verb: "Change plan",
  };
}

/** The features of the plans that differ. */
function featureChanges(from: PlanDocument | null, { features: after = {} }: PlanDocument) {
  const before = from?.features ?? {};
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [old, next] = [featureText(before[key]), featureText(after[key])];
    return old === next ? [] : [{ what: `Feature ${key}`, before: old, after: next }];
  });
}

/** The plans that a user may change to. */
export function onOffer({ plans = [] }: ShownCatalog): readonly PlanDocument[] {
  return plans.filter(({ archived }) => archived !== true);
}

function policyText({ onPlanChange = "carry" }: PlanDocument, isFirst: boolean): string {
  if (isFirst) return "Usage starts at 0.";
  switch (onPlanChange) {
    case "carry":
      return "Usage of limits that both plans have is carried over.";
    case "reset":
      return "Usage of its limits starts at 0.";
    case "block":
      return "Its limits are blocked until the next period starts.";
  }
}

function strongerText(plan: PlanDocument, other: Row, catalog: ShownCatalog): string {
  const theirs = planOf(catalog, other.planId);
  const name = nameOfRow(other, catalog);
  return theirs !== null && theirs.rank > plan.rank
    ? `The subscription ${name} stays active and ranks higher, so its plan stays in force.`
    : `The subscription ${name} stays active beside it.`;
}

const limits: Action<PlanSubject, typeof upsertSubscription> = {
  path: "/console/apps/:appId/:mode/users/:userId/limits",
  title: "Custom limits",
  load: async (request) => {
    const subject = await loadActive(request);
    if (planOf(subject.catalog, planIdOf(subject)) !== null) return subject;
    const message = "The plan of this user is no longer in the catalog.";
    throw new PageError({ code: "not_found", message }, "No plan");
  },
  location: tabLocation("/billing"),
  intro: ({ user, catalog, ...subject }) =>
    `Quotas for ${user.userId}, instead of those of ${
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
        hint: `Default of the plan: ${amountText(group.quota, group.unit)}${periodText(group)}.${
          group.unit === "cents" ? " Enter cents." : ""
        }`,
      };
    }),
  call: upsertSubscription,
  input: (subject, values) => ({
    userId: subject.user.userId,
    planId: planIdOf(subject),
    ...idsOf(subject.rows[0] ?? null),
    // Leaving it out would remove a scheduled end.
    endsAt: subject.user.subscription?.endsAt ?? undefined,
    customLimits: limitsOf(subject, values),
  }),
  preview: (_, subject, values) => {
    const now = customOf(subject);
    const then = limitsOf(subject, values);
    const changes = groupsOf(subject).flatMap(({ id, label, unit, quota }) => {
      const [before, after] = [now[id], then[id]].map((custom) =>
        custom === undefined ? `${amountText(quota, unit)} (plan)` : amountText(custom.quota as number, unit)
      ) as [string, string];
      return before === after ? [] : [{ what: label, before, after }];
    });
    if (changes.length === 0) {
      return [{ field: null, message: "No changes: these quotas are already set." }];
    }
    return {
      sentences: [
        `The quotas of ${subject.user.userId} change at once. Usage is kept.`,
        "They are removed when the plan changes.",
      ],
      changes,
      basis: { subscription: subject.user.subscription },
      verb: "Set limits",
    };
  },
  done: ({ user }) => `The limits of ${user.userId} are updated.`,
};

function planIdOf({ rows }: PlanSubject): string {
  return rows[0]?.planId ?? "";
}

function groupsOf(subject: PlanSubject) {
  return planOf(subject.catalog, planIdOf(subject))?.limits ?? [];
}

/** When a group with a period of its own counts; empty for the period of the plan. */
function periodText({ period }: ReturnType<typeof groupsOf>[number]): string {
  if (period === undefined) return "";
  const { type, seconds = 0 } = period;
  switch (type) {
    case "rolling":
      return ` in ${durationText(seconds)}`;
    case "concurrent":
      return " in flight";
    case "session":
      return ` in a session of ${durationText(seconds)}`;
    default:
      return `, ${type}`;
  }
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

const cancel: Action<PlanSubject, typeof cancelSubscription> = {
  path: "/console/apps/:appId/:mode/users/:userId/cancel",
  title: "Cancel subscription",
  load: loadActive,
  location: tabLocation("/billing"),
  intro: ({ user }) => `For ${user.userId}. The payment provider is not notified: cancel there too.`,
  fields: (subject) => [
    rowField(subject, false),
    { name: "endsAt", label: "Ends", kind: "time", hint: "Leave empty to end it now." },
    { name: "reason", label: "Reason", kind: "long", hint: "Stored in the history." },
  ],
  call: cancelSubscription,
  input: (subject, values) => ({
    userId: subject.user.userId,
    ...idsOf(rowOf(subject, values)),
    endsAt: timeIn(values["endsAt"] ?? ""),
    reason: textIn(values["reason"] ?? ""),
  }),
  preview: (_, subject, values) => {
    const { user, catalog, rows } = subject;
    const row = rowOf(subject, values);
    if (row === null) return [{ field: "row", message: "This subscription is no longer active" }];
    const at = timeIn(values["endsAt"] ?? "");
    const others = rows.filter((other) => other !== row).map((other) => nameOfRow(other, catalog));
    return {
      sentences: [
        `The subscription ${nameOfRow(row, catalog)} of ${user.userId} ends ${
          at === undefined ? "now" : `at ${timeLabel(at)}`
        }.`,
        others.length === 0
          ? "No other subscription is active: only credits can be used then."
          : `Still active: ${others.join(", ")}. The plan with the highest rank is in force then.`,
        "Changing the plan again reactivates the subscription with its usage.",
      ],
      changes: [{ what: "Ends", before: endText(row.endsAt), after: at === undefined ? "now" : endText(at) }],
      basis: { row, others },
      verb: "Cancel subscription",
    };
  },
  done: (subject, values) => {
    const row = rowOf(subject, values);
    return row === null ? "The subscription is canceled." : `${nameOfRow(row, subject.catalog)} is canceled.`;
  },
};

/** The actions on subscriptions. */
export const SUBSCRIPTION_ACTIONS = [actionRoutes(change), actionRoutes(limits), actionRoutes(cancel)];
