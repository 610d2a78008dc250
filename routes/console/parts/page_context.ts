// What pages and actions are, what they get and what they return.

import type { Child } from "hono/jsx";
import type { ApiCaller } from "./ask.ts";
import type { Crumb, Frame } from "./page.tsx";
import type { CallDefinition } from "../../contract/definition.ts";
import { mayChange, mayMake, type Session } from "./session.ts";

/** A request of a signed-in operator. */
export interface PageRequest {
  readonly session: Session;
  /** Members of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The fields of the form that was sent; empty for a GET. */
  readonly form: URLSearchParams;
  /** Calls the API. */
  readonly ask: ApiCaller;
  /** The app and mode of the path; null for pages of the whole service. */
  readonly app: Frame["app"];
  /** Whether the browser asks for the content alone, without the frame. */
  readonly isPartial: boolean;
  readonly path: string;
}

/** The content of a page, for the frame. */
export interface PageContent {
  readonly title: string;
  readonly crumbs?: readonly Crumb[];
  readonly content: Child;
  readonly status?: number;
  /** Set when an action was done: a second click gets the same page, and nothing runs again. */
  readonly isDone?: boolean;
}

/** A redirect of the browser. */
interface Redirect {
  readonly to: string;
  /** What was done; the page shows it once. */
  readonly note?: string;
  readonly isDone?: boolean;
}

/** A file to save, such as a list as CSV. */
export interface Download {
  readonly name: string;
  readonly type: string;
  /** The whole file, or a stream of its pieces. */
  readonly text: string | ReadableStream<Uint8Array>;
}

export type PageResult = PageContent | Redirect | Download;

/** A page. */
export interface PageRoute {
  readonly path: string;
  readonly show: (request: PageRequest) => Promise<PageResult> | PageResult;
}

/** A form that is posted. It carries the session's CSRF token, and a key by which it is done once. */
export interface ActionRoute {
  readonly path: string;
  /** The call that it makes, where roles other than admin may make it. */
  readonly call?: Pick<CallDefinition, "id">;
  readonly run: (request: PageRequest & { readonly once: string }) => Promise<PageResult> | PageResult;
}

/** Whether an operator may send the form of an action. */
export function mayRun(session: Session, { call }: Pick<ActionRoute, "call">): boolean {
  return call === undefined ? mayChange(session) : mayMake(session, call);
}

export { mayChange, mayMake } from "./session.ts";
