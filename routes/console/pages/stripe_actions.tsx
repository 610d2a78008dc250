// Actions on an app's connection to Stripe.

import { type Action, actionRoutes } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { appPath, crumbsOf } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { appOf, dataOf, PageError } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { deleteStripe, getStripe, retryUnhandledStripe, setStripe } from "../../contract/stripe.ts";

/** The connection of a mode as the admin API returns it. */
export type ShownStripe = AnswerOf<typeof getStripe>["live"];

interface StripeSubject {
  readonly app: AppMode & { readonly name: string };
  readonly stripe: ShownStripe;
}

/** The path of an app's connection to Stripe. */
export function stripePath(app: AppMode): string {
  return `${appPath(app)}/stripe`;
}

/** Reads the connection of the app and mode in the path. */
export async function loadStripe(request: PageRequest): Promise<StripeSubject> {
  const app = appOf(request);
  const byMode = await request.ask.admin(getStripe, { appId: app.appId }).then(dataOf);
  return { app, stripe: byMode[app.mode] };
}

function stripeLocation({ app }: StripeSubject) {
  const back = stripePath(app);
  return { crumbs: crumbsOf(app, { title: "Stripe", href: back }), back };
}

const set: Action<StripeSubject, typeof setStripe> = {
  path: "/console/apps/:appId/:mode/stripe/set",
  title: "Set signing secret",
  load: loadStripe,
  location: stripeLocation,
  fields: () => [{
    name: "webhookSecret",
    label: "Signing secret",
    kind: "secret",
    hint: "Stripe shows it with the endpoint. It begins with whsec_ and will not be shown here again.",
    isRequired: true,
  }],
  intro: ({ stripe }) =>
    stripe.isSet
      ? "The new secret replaces the current one. Messages signed with the current secret will be refused."
      : "Create an endpoint in Stripe for the URL on the previous page, then copy its signing secret.",
  call: setStripe,
  input: ({ app }, { webhookSecret }) => ({ appId: app.appId, mode: app.mode, webhookSecret }),
  preview: (_, { app, stripe }) => ({
    sentences: [
      `${app.name} will accept messages from Stripe in ${app.mode} mode that are signed with this secret.`,
      "A payment for a price in the catalog gives the user of the payment the plan or pack of that price.",
    ],
    changes: [{
      what: `Stripe in ${app.mode} mode`,
      before: stripe.isSet ? "connected" : "not connected",
      after: stripe.isSet ? "connected with the new secret" : "connected",
    }],
    verb: "Save",
  }),
  done: () => "The signing secret is saved.",
};

const remove: Action<StripeSubject, typeof deleteStripe> = {
  path: "/console/apps/:appId/:mode/stripe/remove",
  title: "Disconnect Stripe",
  load: async (request) => {
    const subject = await loadStripe(request);
    if (subject.stripe.isSet) return subject;
    throw new PageError(
      { code: "not_found", message: "Stripe is not connected in this mode." },
      "Nothing to do",
    );
  },
  location: stripeLocation,
  call: deleteStripe,
  input: ({ app }) => ({ appId: app.appId, mode: app.mode }),
  preview: (_, { app }) => ({
    sentences: ["Messages from Stripe will be refused. Their earlier effects stay."],
    changes: [{ what: `Stripe in ${app.mode} mode`, before: "connected", after: "not connected" }],
    danger: {
      consequence:
        "The secret is deleted. Subscriptions that end in Stripe while disconnected stay active here.",
      typed: null,
    },
    verb: "Disconnect",
  }),
  done: () => "Stripe is disconnected.",
};

interface UnhandledSubject extends StripeSubject {
  readonly eventId: string;
}

const retry: Action<UnhandledSubject, typeof retryUnhandledStripe> = {
  path: "/console/apps/:appId/:mode/stripe/unhandled/:eventId/retry",
  title: "Retry message",
  load: async (request) => {
    const subject = await loadStripe(request);
    return "stripe" in subject ? { ...subject, eventId: request.params["eventId"] ?? "" } : subject;
  },
  location: stripeLocation,
  call: retryUnhandledStripe,
  input: ({ app, eventId }) => ({ appId: app.appId, eventId }),
  preview: (_, { eventId }) => ({
    sentences: [`Message ${eventId} is handled as if Stripe had sent it again.`],
    changes: [],
    verb: "Retry",
  }),
  done: (_, __, answer) => answer.handled ? "The message is handled." : `Not handled: ${answer.reason}.`,
};

/** The actions on the connection to Stripe. */
export const STRIPE_ACTIONS = [actionRoutes(set), actionRoutes(remove), actionRoutes(retry)];
