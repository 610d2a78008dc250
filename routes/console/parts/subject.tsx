// The user of a page or an action, and the error of a call that failed.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import type { ApiAnswer, AppMode } from "./ask.ts";
import { STATUS } from "../../http/errors.ts";
import { crumbsOf, userPath, usersCrumb } from "./page.tsx";
import { Message } from "./message.tsx";
import type { PageContent, PageRequest, PageResult } from "./page_context.ts";
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

/** Ends a page or an action: the operator gets a page with the error. */
export class PageError extends Error {
  readonly page: PageContent;

  constructor({ code, message }: Refusal, title = "This page could not be loaded") {
    super(message);
    this.page = { title, content: <Message title={title} text={message} />, status: STATUS[code] };
  }
}

/** The result of a page or an action, or the page of the error that ended it. */
export async function resultOf(make: () => Promise<PageResult> | PageResult): Promise<PageResult> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof PageError) return error.page;
    throw error;
  }
}

/** Returns the data of an answer; throws a `PageError` for a call that failed. */
export function dataOf<T>(answer: ApiAnswer<T>, title?: string): T {
  if (!answer.ok) throw new PageError(answer.error, title);
  return answer.data;
}

/** Reads the user that the path names. */
export async function loadUser(request: PageRequest): Promise<UserSubject> {
  const app = appOf(request);
  const { userId = "" } = request.params;
  const user = await request.ask.app(app, getUser, { userId }).then(dataOf);
  return { app, user };
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
