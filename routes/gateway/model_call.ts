// Reads a call: its user, event type and metadata, the most that it may use, and the body that goes to the server. The
// caller's bytes are passed on unchanged, except that a stream is asked for the report of its usage.

import { z } from "zod";
import { numberOf } from "../../src/domain/values/amount.ts";
import { type CallEstimate, estimateCall } from "../../src/domain/pricing/model_call.ts";
import { GATEWAY_LIMITS } from "../../src/process/limits.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { type LargeBody, type Members, readLarge } from "../http/body.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkMembers } from "../http/input.ts";
import { holdInput } from "./holds.ts";
import { type AnswerShape, looseOf } from "./texts.ts";

/** A kind of call, under `/openai/v1`. */
export interface CallKind {
  /** Its path, here and at the server. */
  readonly path: string;
  readonly shape: AnswerShape;
  /** The event type, where the caller names none. */
  readonly event: string;
}

export const CALL_KINDS = [
  { path: "/chat/completions", shape: "chat", event: "openai.chat" },
  { path: "/responses", shape: "responses", event: "openai.responses" },
  { path: "/embeddings", shape: "none", event: "openai.embeddings" },
] as const satisfies readonly CallKind[];

/** A call that has passed every check before its hold. */
export interface ReadCall {
  readonly kind: CallKind;
  /** The body that goes to the server. */
  readonly bytes: Uint8Array;
  /** Whether the event with the report is not passed on, since the caller did not ask for it. */
  readonly dropsReport: boolean;
  readonly estimate: CallEstimate;
  /** Whether texts may go into the log; the decision checks the user's consent. */
  readonly isLogged: boolean;
  /** What is to be held. */
  readonly hold: z.output<typeof holdInput>;
  /** Gives back the memory that the body takes. */
  readonly give: () => void;
}

/** The source of each member of the hold. */
const SOURCES: Readonly<Record<string, string>> = {
  event: "X-Holdfast-Event",
  metadata: "X-Holdfast-Metadata",
};

/** Reads a call. */
export async function readCall(request: Request, kind: CallKind, { realm }: Caller): Promise<ReadCall> {
  const body = await readLarge(request, GATEWAY_LIMITS.bodyBytesMax);
  try {
    return checkCall(request, kind, body, realm.catalog.promptLogging);
  } catch (error) {
    body.give();
    throw error;
  }
}

function checkCall(request: Request, kind: CallKind, body: LargeBody, isLogged: boolean): ReadCall {
  const { members: call, give } = body;
  if (call.background === true) {
    throw invalidMember("background", "must not be true: the answer could not be metered");
  }
  const estimate = estimateCall(call, kind.shape !== "none");
  if ("path" in estimate) throw invalidMember(estimate.path, estimate.message);
  const named = headerText(request, "X-Holdfast-User");
  const model = call.model ?? undefined;
  const members: Members = {
    userId: named ?? call.user ?? undefined,
    event: headerText(request, "X-Holdfast-Event") ?? kind.event,
    metadata: { ...metadataOf(request), model },
    model,
    inputTokens: numberOf(estimate.inputTokens),
    maxOutputTokens: estimate.maxOutputTokens === null ? null : numberOf(estimate.maxOutputTokens),
    cacheWriteTokens: numberOf(estimate.cacheWriteTokens),
    cacheWrite1hTokens: numberOf(estimate.cacheWrite1hTokens),
    prompt: isLogged ? promptOf(call) : null,
  };
  const userPath = named === null ? "user" : "X-Holdfast-User";
  const hold = checkNamed(members, { ...SOURCES, userId: userPath });
  return { kind, estimate, isLogged, hold, give, ...withReport(kind, body) };
}

/** Checks the members of a hold. A fault names the source of its member. */
function checkNamed(members: Members, sources: Readonly<Record<string, string>>): ReadCall["hold"] {
  try {
    return checkMembers(holdInput, members);
  } catch (error) {
    const { refusal } = error as Refused;
    const [fault] = (refusal?.details ?? []) as { path: string; message: string }[];
    if (fault === undefined) throw error;
    const path = sources[fault.path] ?? fault.path;
    const isUser = path === "user" && members.userId === undefined;
    throw invalidMember(path, isUser ? "is required, or the header X-Holdfast-User" : fault.message);
  }
}

const ASCII = /^[\x20-\x7e\t]*$/;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Returns the text of a header with UTF-8 bytes; null without the header. */
function headerText({ headers }: Request, name: string): string | null {
  const value = headers.get(name);
  if (value === null || ASCII.test(value)) return value;
  try {
    return utf8.decode(Uint8Array.from(value, (char) => char.charCodeAt(0)));
  } catch {
    throw invalidMember(name, "must be UTF-8");
  }
}

const object = z.record(z.string(), z.unknown());

function metadataOf(request: Request): Members {
  const name = "X-Holdfast-Metadata";
  const text = headerText(request, name);
  if (text === null) return {};
  try {
    return object.parse(JSON.parse(text));
  } catch {
    throw invalidMember(name, "must be a JSON object");
  }
}

/** Returns the prompt, for the log, which cuts it. */
function promptOf({ messages, input }: Members): string | null {
  const asked = messages ?? input ?? null;
  if (asked === null) return null;
  const text = typeof asked === "string" ? asked : JSON.stringify(asked);
  return text.slice(0, GATEWAY_LIMITS.loggedChars).toWellFormed();
}

const BRACE = "{".charCodeAt(0);
const ASKS_REPORT = `"stream_options":{"include_usage":true},`;
const encoder = new TextEncoder();

/** Returns the body for the server: a stream of a chat is asked to report its usage. */
function withReport(
  { shape }: CallKind,
  { bytes, members }: LargeBody,
): Pick<ReadCall, "bytes" | "dropsReport"> {
  const { stream, stream_options: options } = members;
  if (shape !== "chat" || stream !== true) return { bytes, dropsReport: false };
  if (options === undefined) {
    const place = bytes.indexOf(BRACE) + 1;
    const asking = encoder.encode(ASKS_REPORT);
    const longer = new Uint8Array(bytes.byteLength + asking.byteLength);
    longer.set(bytes.subarray(0, place));
    longer.set(asking, place);
    longer.set(bytes.subarray(place), place + asking.byteLength);
    return { bytes: longer, dropsReport: true };
  }
  if (options !== null && (typeof options !== "object" || Array.isArray(options))) {
    return { bytes, dropsReport: false };
  }
  if (looseOf(options).include_usage === true) return { bytes, dropsReport: false };
  const asking = { ...members, stream_options: { ...looseOf(options), include_usage: true } };
  return { bytes: encoder.encode(JSON.stringify(asking)), dropsReport: true };
}
