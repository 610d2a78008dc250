// The user that an act is done to, as its form and preview need to know them.

import type {
  CreditBalance,
  DuplicateActiveSubscriptions,
  SubscriptionRef,
} from "../../../src/client/wire_types.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import type { AppMode } from "./ask.ts";
import { STATUS } from "../../http/errors.ts";
import { appPath, userPath } from "./page.tsx";
import type { PageRequest, Shown } from "./page_context.ts";

/** A subscription as the API shows it. */
export interface ShownSubscription {
  readonly subscriptionId: string;
  readonly planId: string;
  readonly startedAt: string;
  readonly endsAt: string | null;
  readonly cycleAnchorAt: string | null;
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly customLimits: Readonly<Record<string, { readonly quota: number }>> | null;
}

/** A user as `GET /v1/users/{userId}` shows them. */
export interface ShownUser {
  /** The canonical id. */
  readonly userId: string;
  readonly aliases: readonly string[];
  /** The one whose plan is in force. */
  readonly subscription: ShownSubscription | null;
  /** Other active ones. */
  readonly duplicates: readonly SubscriptionRef[];
  /** Newest first, at most 50. */
  readonly history: readonly SubscriptionChange[];
  readonly period: { readonly start: string; readonly end: string | null } | null;
  /** Neither expired nor revoked. */
  readonly credits: readonly CreditBalance[];
}

/** A row of the history of subscriptions. */
export interface SubscriptionChange {
  readonly type: string;
  readonly subscriptionId: string;
  readonly planId: string;
  readonly previousPlanId: string | null;
  readonly reason: string | null;
  readonly at: string;
}

type AnsweredUser = Omit<ShownUser, "duplicates"> & {
  readonly duplicateActiveSubscriptions: DuplicateActiveSubscriptions | null;
};

/** What acts on a user know. */
export interface UserSubject {
  readonly app: AppMode & { readonly name: string };
  readonly user: ShownUser;
}

/** The app of a page whose path names one. */
export function appOf({ app }: PageRequest): AppMode & { readonly name: string } {
  if (app === null) throw new Error("The path names an app");
  return app;
}

/** The page of an endpoint that was refused. */
export function refusedPage({ code, message }: Refusal, title = "Not shown"): Shown {
  return {
    title,
    content: (
      <section class="message">
        <h1>{title}</h1>
        <p>{message}</p>
      </section>
    ),
    status: STATUS[code],
  };
}

/** Reads the user that the path names. */
export async function aboutUser(request: PageRequest): Promise<UserSubject | Shown> {
  const app = appOf(request);
  const answer = await request.ask.app<AnsweredUser>(app, "getUser", {
    userId: request.params["userId"] ?? "",
  });
  if (!answer.ok) return refusedPage(answer.error);
  const { duplicateActiveSubscriptions, ...user } = answer.data;
  return { app, user: { ...user, duplicates: duplicateActiveSubscriptions?.duplicates ?? [] } };
}

/** Where acts on a user are: on that user's page. */
export function placeOfUser(_: PageRequest, { app, user }: UserSubject) {
  const back = userPath(app, user.userId);
  return { crumbs: [{ title: app.name, href: appPath(app) }, { title: user.userId, href: back }], back };
}
