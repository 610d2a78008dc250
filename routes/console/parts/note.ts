// The note that a page shows once after an action. It is sent in a cookie signed with the session's key, so that no link
// can make a page claim what never happened.

import { openToken, signToken } from "../../../src/process/secrets/signed_token.ts";
import type { Session } from "./session.ts";

const COOKIE = "holdfast_note";
const LASTS_S = 60;
const LENGTH_MAX = 600;

interface Note {
  readonly sessionId: string;
  readonly path: string;
  readonly text: string;
}

/** The set-cookie header with a note for the page of a path. */
export function noteCookie(session: Session, path: string, text: string, isSecure: boolean): string {
  const note: Note = {
    sessionId: session.id,
    path: pathOf(path),
    text: text.slice(0, LENGTH_MAX).toWellFormed(),
  };
  const value = signToken(session.operator.sessionKey, note);
  return `${COOKIE}=${value}; Max-Age=${LASTS_S}; ${attributes(isSecure)}`;
}

/** The set-cookie header that removes a note that was shown. */
export function readNoteCookie(isSecure: boolean): string {
  return `${COOKIE}=; Max-Age=0; ${attributes(isSecure)}`;
}

/** The note for a page of a session; null for none. */
export function noteOf(request: Request, session: Session, path: string): string | null {
  for (const part of (request.headers.get("cookie") ?? "").split(";")) {
    const [name, value = ""] = part.trim().split("=", 2);
    if (name !== COOKIE) continue;
    const note = openToken(value, [session.operator.sessionKey])?.payload as Partial<Note> | null | undefined;
    if (note == null || note.sessionId !== session.id || note.path !== pathOf(path)) continue;
    if (typeof note.text === "string") return note.text;
  }
  return null;
}

function attributes(isSecure: boolean): string {
  return `Path=/console; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

/** A normalized path without query. */
function pathOf(to: string): string {
  return new URL(to, "http://host").pathname;
}
