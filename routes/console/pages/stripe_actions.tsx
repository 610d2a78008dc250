// What is done to an app's connection with Stripe.

import { type Act, actAt } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { appPath } from "../parts/page.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { appOf, refusedPage } from "../parts/subject.tsx";

/** How Stripe is set up for a mode, as the admin API shows it. */
export interface ShownStripe {
  readonly isSet: boolean;
  readonly setAt: string | null;
  readonly path: string;
  readonly lastMessage: {
    readonly eventId: string;
    readonly type: string;
    readonly at: string;
    readonly handled: boolean;
    readonly reason: string | null;
  } | null;
}

interface StripeSubject {
  readonly app: AppMode & { readonly name: string };
  readonly stripe: ShownStripe;
}

/** The path of an app's connection with Stripe. */
export function stripePath(app: AppMode): string {
  return `${appPath(app)}/stripe`;
}

/** Reads how Stripe is set up for the app and mode of the path. */
export async function aboutStripe(request: PageRequest): Promise<StripeSubject | Shown> {
  const app = appOf(request);
  const answer = await request.ask.admin<Record<"live" | "test", ShownStripe>>("getStripe", {
    appId: app.appId,
  });
  return answer.ok ? { app, stripe: answer.data[app.mode] } : refusedPage(answer.error);
}

function placeOfStripe(_: PageRequest, { app }: StripeSubject) {
  const back = stripePath(app);
  return { crumbs: [{ title: app.name, href: appPath(app) }, { title: "Stripe", href: back }], back };
}

const set: Act<StripeSubject> = {
  path: "/console/apps/:appId/:mode/stripe/set",
  title: "Set the secret of Stripe's messages",
  about: aboutStripe,
  place: placeOfStripe,
  fields: () => [{
    name: "webhookSecret",
    label: "Signing secret",
    kind: "secret",
    hint: "Stripe shows it with the endpoint. It begins with whsec_ and is not shown here again.",
    isRequired: true,
  }],
  lead: ({ stripe }) =>
    stripe.isSet
      ? "Another secret replaces the one that is set. Messages signed with the old one are refused from then on."
      : "Make an endpoint in Stripe for the address on the page before, then take its signing secret from there.",
  call: ({ app }, { webhookSecret }) => ({
    id: "setStripe",
    members: { appId: app.appId, mode: app.mode, webhookSecret },
    isAdmin: true,
  }),
  preview: (_, { app, stripe }) => ({
    sentences: [
      `From now on ${app.name} takes Stripe's messages in ${app.mode} mode that are signed with this secret.`,
      "What they sell by prices of the catalog is given to the user that they name.",
    ],
    changes: [{
      what: `Stripe in ${app.mode} mode`,
      before: stripe.isSet ? "set" : "not set",
      after: stripe.isSet ? "set to another secret" : "set",
    }],
    verb: "Set it",
  }),
  done: () => "The secret is set.",
};

const remove: Act<StripeSubject> = {
  path: "/console/apps/:appId/:mode/stripe/remove",
  title: "Take no more messages of Stripe",
  about: async (request) => {
    const subject = await aboutStripe(request);
    if (!("stripe" in subject) || subject.stripe.isSet) return subject;
    return refusedPage(
      { code: "not_found", message: "Stripe is not set up for this mode." },
      "Nothing to do",
    );
  },
  place: placeOfStripe,
  fields: () => [],
  call: ({ app }) => ({
    id: "deleteStripe",
    members: { appId: app.appId, mode: app.mode },
    isAdmin: true,
  }),
  preview: (_, { app }) => ({
    sentences: ["Messages of Stripe are refused from then on. What they did stays."],
    changes: [{ what: `Stripe in ${app.mode} mode`, before: "set", after: "not set" }],
    danger: {
      consequence: "The secret is forgotten. Plans that end in Stripe meanwhile go on here.",
      typed: null,
    },
    verb: "Remove it",
  }),
  done: () => "The secret is removed.",
};

/** The acts on the connection with Stripe. */
export const STRIPE_ACTS = [actAt(set), actAt(remove)];
