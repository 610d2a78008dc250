// The user of a page or an action, and the error page for a call that failed.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import type { AppMode } from "./ask.ts";
import { STATUS } from "../../http/errors.ts";
import { crumbsOf, userPath, usersCrumb } from "./page.tsx";
import { Message } from "./message.tsx";
import type { PageContent, PageRequest } from "./page_context.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { getUser } from "../../contract/usage.ts";

/** A user as the API returns it. */
export type ShownUser = AnswerOf<typeof getUser>;

/** A user and its app. */
export interface UserSubject {
  readonly app: AppMode & { readonly name: string };
  readonly user: ShownUser;
}

/** Whether a user has a parent. One without has a parent of null if it has children, else no member for it. */
export function hasParent({ parentId = null }: ShownUser): boolean {
  return parentId !== null;
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
  const answer = await request.ask.app(app, getUser, { userId: request.params["userId"] ?? "" });
  return answer.ok ? { app, user: answer.data } : errorPage(answer.error);
}

/** The tabs of a user's page, by the ends of their paths. */
export type TabPath = "" | "/billing" | "/activity" | "/privacy";

/** The location of actions on a user: the user's page. */
export function userLocation({ app, user }: UserSubject) {
  return locationIn("", { app, user });
}

/** The location of actions that a tab of the user's page offers. */
export function tabLocation(tab: TabPath) {
  return (subject: UserSubject) => locationIn(tab, subject);
}

function locationIn(tab: TabPath, { app, user }: UserSubject) {
  const path = userPath(app, user.userId);
  return {
    crumbs: crumbsOf(app, usersCrumb(app), { title: user.userId, href: path }),
    back: `${path}${tab}`,
  };
}
