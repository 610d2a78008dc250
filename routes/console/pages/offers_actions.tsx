// Actions on what the subscription in force has beside its plan: seats, the trial, and the next plan.

import { SEATS_MAX } from "../../../src/domain/state/subscription.ts";
import { type Action, actionRoutes } from "../parts/action.tsx";
import { planName, planOf } from "../parts/catalog.ts";
import { timeLabel } from "../parts/format.tsx";
import { type Field, numberIn, timeIn, type Values } from "../parts/form.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { PageError, type ShownUser, tabLocation } from "../parts/subject.tsx";
import { unscheduleSubscription, upsertSubscription } from "../../contract/subscriptions.ts";
import { idsOf, loadActive, onOffer, type PlanSubject } from "./subscriptions_actions.tsx";

/** A user with the subscription in force. */
interface InForce extends PlanSubject {
  readonly subscription: NonNullable<ShownUser["subscription"]>;
}

async function loadInForce(request: PageRequest): Promise<InForce> {
  const subject = await loadActive(request);
  const { subscription } = subject.user;
  if (subscription !== null) return { ...subject, subscription };
  throw new PageError({ code: "not_found", message: "This user has no plan in force." }, "No plan");
}

const ABOUT_USER = {
  location: tabLocation("/billing"),
  intro: ({ user, catalog, subscription }: InForce) =>
    `For ${user.userId}, on ${planName(catalog, subscription.planId)}.`,
};

const seats: Action<InForce, typeof upsertSubscription> = {
  ...ABOUT_USER,
  path: "/console/apps/:appId/:mode/users/:userId/seats",
  title: "Seats and trial",
  load: loadInForce,
  fields: seatFields,
  call: upsertSubscription,
  input: ({ user, subscription }, values) => ({
    userId: user.userId,
    planId: subscription.planId,
    ...idsOf(subscription),
    // Leaving it out would remove a scheduled end.
    endsAt: subscription.endsAt ?? undefined,
    quantity: numberIn(values["quantity"] ?? ""),
    trial: endsTrial(values) ? false : undefined,
  }),
  preview: (_, { user, subscription }, values) => {
    const [before, after] = [subscription.quantity ?? 1, Number(values["quantity"])];
    const changes = [
      ...before === after ? [] : [{ what: "Seats", before: String(before), after: String(after) }],
      ...endsTrial(values)
        ? [{ what: "Trial ends", before: trialText(subscription), after: "no trial" }]
        : [],
    ];
    if (changes.length === 0) return [{ field: null, message: "No changes: this is already set." }];
    return {
      sentences: [`The quotas of the plan of ${user.userId} are multiplied by the seats. Usage is kept.`],
      changes,
      basis: { subscription },
      verb: "Save",
    };
  },
  done: ({ user }) => `The subscription of ${user.userId} is updated.`,
};

function seatFields({ subscription: { quantity = 1, trialEndsAt = null } }: InForce): readonly Field[] {
  const seats: Field = {
    name: "quantity",
    label: "Seats",
    kind: "number",
    value: String(quantity),
    isRequired: true,
    hint: `1 to ${SEATS_MAX}`,
  };
  const trial: Field = { name: "paid", label: "End the trial now and keep the plan", kind: "checkbox" };
  return trialEndsAt === null ? [seats] : [seats, trial];
}

function endsTrial(values: Values): boolean {
  return values["paid"] === "yes";
}

function trialText({ trialEndsAt = null }: InForce["subscription"]): string {
  return trialEndsAt === null ? "no trial" : timeLabel(trialEndsAt);
}

const later: Action<InForce, typeof upsertSubscription> = {
  ...ABOUT_USER,
  path: "/console/apps/:appId/:mode/users/:userId/next-plan",
  title: "Change plan later",
  load: loadInForce,
  fields: ({ catalog, subscription: { planId, scheduled } }) => {
    const others = onOffer(catalog).filter(({ id }) => id !== planId);
    return [
      {
        name: "planId",
        label: "Next plan",
        kind: "select",
        value: scheduled?.planId ?? others[0]?.id ?? "",
        options: others.map(({ id, name }) => ({ value: id, text: name })),
      },
      { name: "at", label: "When", kind: "time", hint: "Leave empty for the end of the running period." },
    ];
  },
  call: upsertSubscription,
  input: ({ user, subscription }, values) => ({
    userId: user.userId,
    planId: values["planId"],
    ...idsOf(subscription),
    at: timeIn(values["at"] ?? "") ?? "period_end",
  }),
  preview: (_, { user, catalog, subscription }, values) => {
    const plan = planOf(catalog, values["planId"] ?? "");
    if (plan === null) return [{ field: "planId", message: "This plan is no longer in the catalog" }];
    const at = timeIn(values["at"] ?? "");
    const when = at === undefined ? "at the end of the running period" : `at ${timeLabel(at)}`;
    return {
      sentences: [
        `${user.userId} changes to ${plan.name} ${when}.`,
        "Any other change of the subscription before that drops it.",
      ],
      changes: [{
        what: "Next plan",
        before: nextText(subscription, catalog),
        after: `${plan.name}, ${when}`,
      }],
      basis: { plan, subscription },
      verb: "Schedule the change",
    };
  },
  done: ({ user, catalog }, values) =>
    `The change of ${user.userId} to ${planName(catalog, values["planId"] ?? "")} is scheduled.`,
};

function nextText({ scheduled = null }: InForce["subscription"], catalog: InForce["catalog"]): string {
  return scheduled === null
    ? "none"
    : `${planName(catalog, scheduled.planId)}, at ${timeLabel(scheduled.at)}`;
}

const drop: Action<InForce, typeof unscheduleSubscription> = {
  ...ABOUT_USER,
  path: "/console/apps/:appId/:mode/users/:userId/next-plan/drop",
  title: "Drop the next plan",
  load: async (request) => {
    const subject = await loadInForce(request);
    if (subject.subscription.scheduled != null) return subject;
    const message = "No change of the plan is scheduled.";
    throw new PageError({ code: "not_found", message }, "No scheduled change");
  },
  call: unscheduleSubscription,
  input: ({ user, subscription }) => ({ userId: user.userId, ...idsOf(subscription) }),
  preview: (_, { user, catalog, subscription }) => ({
    sentences: [`${user.userId} stays on ${planName(catalog, subscription.planId)}.`],
    changes: [{ what: "Next plan", before: nextText(subscription, catalog), after: "none" }],
    basis: { subscription },
    verb: "Drop the change",
  }),
  done: ({ user }) => `The scheduled change of ${user.userId} is dropped.`,
};

/** The actions on seats, trials and the next plan. */
export const OFFER_ACTIONS = [actionRoutes(seats), actionRoutes(later), actionRoutes(drop)];
