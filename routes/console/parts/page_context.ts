// What a page is and what it gets: a path under /console with the request's parts read and somebody signed in.

import type { Child } from "hono/jsx";
import type { Asking } from "./ask.ts";
import type { Crumb, Frame } from "./page.tsx";
import type { Role } from "../../../src/process/operators.ts";
import type { Session } from "./session.ts";

/** A request to a page. */
export interface PageRequest {
  readonly session: Session;
  /** Members of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The fields of a form that was sent; empty for a page that is looked at. */
  readonly form: URLSearchParams;
  readonly ask: Asking;
  /** The app in its mode that the path names; null for pages of the whole service. */
  readonly app: Frame["app"];
  /** Whether the browser asks for a part of the page alone. */
  readonly isPartial: boolean;
  /** The path as it was asked for. */
  readonly path: string;
}

/** A page as content for the frame. */
export interface Shown {
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  readonly content: Child;
  readonly status?: number;
  /** Whether something was done, so that doing it again under the same key is no try of its own. */
  readonly isDone?: boolean;
  /** Whether the page needs what draws charts. */
  readonly hasCharts?: boolean;
}

/** Where a browser goes next. */
export interface Elsewhere {
  readonly to: string;
  /** What was done: the page that it goes to says so, once. */
  readonly note?: string;
  readonly isDone?: boolean;
}

/** A file to keep, such as a list as CSV. */
export interface Download {
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

export type Outcome = Shown | Elsewhere | Download;

/** A page that is looked at. */
export interface PageAt {
  readonly path: string;
  readonly show: (request: PageRequest) => Promise<Outcome> | Outcome;
}

/** Something that an operator does. Its form carries the session's token and a key that makes it happen once. */
export interface ActionAt {
  readonly path: string;
  /** Who may do it; by default admins alone. */
  readonly role?: Role;
  readonly run: (request: PageRequest & { readonly once: string }) => Promise<Outcome> | Outcome;
}

export { mayChange } from "./session.ts";
