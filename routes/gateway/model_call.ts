// Reads a call: its user, event type and metadata, the most that it may use, and the body that goes to the server.

import { z } from "zod";
import { numberOf } from "../../src/domain/values/amount.ts";
import type { CallEstimate } from "../../src/domain/pricing/model_call.ts";
import { allowsModel, type Catalog } from "../../src/domain/catalog/catalog.ts";
import { GATEWAY_LIMITS } from "../../src/process/limits.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { KEYED_POT } from "../http/arrival.ts";
import type { Admitted } from "../http/admission.ts";
import type { EndUser } from "../http/auth.ts";
import { type BodyRules, readBytes } from "../http/body.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkMembers } from "../http/input.ts";
import { type Members, refuseForbiddenText } from "../http/json_body.ts";
import { readAside } from "./body_thread.ts";
import type { CallBody } from "./call_body.ts";
import { holdInput } from "./holds.ts";
import type { AnswerShape } from "../../src/client/openai_shapes.ts";

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
  /** Whether the model's prices show that it reasons. */
  readonly hasReasoningPrice: boolean;
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
  runId: "X-Holdfast-Run",
};

/** Reads a call. */
export async function readCall(
  request: Request,
  kind: CallKind,
  { caller, endUser }: Pick<Admitted<unknown>, "caller" | "endUser">,
): Promise<ReadCall> {
  const { give, ...sent } = await readBytes(request, rulesOf(caller));
  try {
    const { catalog } = caller.realm;
    const { promptLogging: isLogged, gateway: { storedObjects } } = catalog;
    const body = await readAside(sent, { shape: kind.shape, isLogged, storedObjects });
    return { ...checkCall(request, kind, body, catalog, endUser), isLogged, give };
  } catch (error) {
    give();
    throw error;
  }
}

function rulesOf({ app }: Caller): BodyRules {
  const { bodyBytesMax: bytesMax, structureMax } = GATEWAY_LIMITS;
  return { pot: KEYED_POT, appId: app.record.appId, bytesMax, structureMax, checksTexts: true };
}

function checkCall(
  request: Request,
  kind: CallKind,
  { call, estimate, prompt, stored, bytes, dropsReport }: CallBody,
  catalog: Catalog,
  endUser: EndUser | null,
): Omit<ReadCall, "isLogged" | "give"> {
  if (call.background === true) {
    throw invalidMember("background", "must not be true: the answer could not be metered");
  }
  if ("path" in estimate) throw invalidMember(estimate.path, estimate.message);
  const named = headerText(request, "X-Holdfast-User");
  const model = call.model ?? undefined;
  const members: Members = {
    userId: endUser === null ? named ?? call.user ?? undefined : ownUser(endUser, [named, call.user]),
    event: headerText(request, "X-Holdfast-Event") ?? kind.event,
    metadata: { ...metadataOf(request), model },
    model,
    inputTokens: numberOf(estimate.inputTokens),
    maxOutputTokens: estimate.maxOutputTokens === null ? null : numberOf(estimate.maxOutputTokens),
    cacheWriteTokens: numberOf(estimate.cacheWriteTokens),
    cacheWrite1hTokens: numberOf(estimate.cacheWrite1hTokens),
    prompt,
    runId: headerText(request, "X-Holdfast-Run"),
  };
  const userPath = named === null ? "user" : "X-Holdfast-User";
  const hold = checkNamed(members, { ...SOURCES, userId: userPath });
  refuseModel(hold.model, catalog);
  if (stored !== null) throw invalidMember(stored.path, stored.message);
  const prices = catalog.models.get(hold.model)?.prices;
  const hasReasoningPrice = prices !== undefined && prices.reasoning !== prices.output;
  return { kind, estimate, hasReasoningPrice, hold, bytes, dropsReport };
}

/** The id that a call with a user's key names, an alias at most: the owner checks that it is the key's user. */
function ownUser({ userId }: EndUser, named: readonly unknown[]): unknown {
  const others = new Set(named.filter((id) => id != null && id !== userId));
  if (others.size > 1) throw new Refused("forbidden", "The key acts for its own user alone");
  return [...others][0] ?? userId;
}

/** Refuses a model that the app's settings do not allow. */
function refuseModel(model: string, catalog: Catalog): void {
  if (!allowsModel(catalog, model)) {
    throw invalidMember("model", "is not among settings.gateway.models of the catalog");
  }
  if (catalog.gateway.budgetCents !== null && catalog.models.get(model) === undefined) {
    throw invalidMember("model", "has no price in the catalog, which settings.gateway.budgetCents needs");
  }
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
  let members: Members;
  try {
    members = object.parse(JSON.parse(text));
  } catch {
    throw invalidMember(name, "must be a JSON object");
  }
  try {
    refuseForbiddenText(members);
  } catch {
    throw invalidMember(name, "must not contain U+0000 or a lone surrogate");
  }
  return members;
}
