// The user of a page or an action, and the error page for a call that failed.

import type {
  CreditBalance,
  DuplicateActiveSubscriptions,
  SubscriptionRef,
} from "../../../src/client/shapes.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import type { AppMode } from "./ask.ts";
import { STATUS } from "../../http/errors.ts";
import { crumbsOf, userPath } from "./page.tsx";
import { Message } from "./message.tsx";
import type { PageContent, PageRequest } from "./page_context.ts";

/** A subscription as the API returns it. */
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

/** A user as `GET /v1/users/{userId}` returns it. */
export interface ShownUser {
  /** The canonical id. */
  readonly userId: string;
  readonly aliases: readonly string[];
  /** The subscription in force. */
  readonly subscription: ShownSubscription | null;
  /** Other active subscriptions. */
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

/** A user and its app. */
export interface UserSubject {
  readonly app: AppMode & { readonly name: string };
  readonly user: ShownUser;
}

/** The app of a request whose path names one. */
export function appOf({ app }: PageRequest): AppMode & { readonly name: string } {
  if (app === null) throw new Error("The path names an app");
  return app;
}

/** The page for a call that failed. */
export function errorPage({ code, message }: Refusal, title = "This page could not be loaded"): PageContent {
  return {
    title,
    content: <Message title={title} text={message} />,
    status: STATUS[code],
  };
}

/** Reads the user that the path names, or returns the error page. */
export async function loadUser(request: PageRequest): Promise<UserSubject | PageContent> {
  const app = appOf(request);
  const answer = await request.ask.app<AnsweredUser>(app, "getUser", {
    userId: request.params["userId"] ?? "",
  });
  if (!answer.ok) return errorPage(answer.error);
  const { duplicateActiveSubscriptions, ...user } = answer.data;
  return { app, user: { ...user, duplicates: duplicateActiveSubscriptions?.duplicates ?? [] } };
}

/** The location of actions on a user: the user's page. */
export function userLocation({ app, user }: UserSubject) {
  const back = userPath(app, user.userId);
  return { crumbs: crumbsOf(app, { title: user.userId, href: back }), back };
}
