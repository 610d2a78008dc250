// Reads a call: its user, event type and metadata, the most that it may use, and the body that goes to the server.

import { z } from "zod";
import { amountOf, numberOf } from "../../src/domain/values/amount.ts";
import type { CallEstimate } from "../../src/domain/pricing/model_call.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import { allowsModel } from "../../src/domain/catalog/gateway.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import { KEYED_POT } from "../http/arrival.ts";
import type { Admitted } from "../http/admission.ts";
import type { EndUser } from "../http/auth.ts";
import { type BodyRules, readBytes } from "../http/body.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkMembers } from "../http/input.ts";
import { type Members, refuseForbiddenText } from "../http/json_body.ts";
import { readAside } from "./body_thread.ts";
import type { CallKind } from "./dialects.ts";
import { boundaryOf } from "./form_body.ts";
import { type CallBody, fittedBytes, type Fitting } from "./call_body.ts";
import { FIT_HEADER, fitIn, fittedHeader } from "./fit.ts";
import { type Fitted, holdInput } from "./holds.ts";

/** A call that has passed every check before its hold. */
export interface ReadCall {
  readonly kind: CallKind;
  readonly model: string;
  /** The content type of the body. */
  readonly type: string;
  /** The body that goes to the server. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the event with the report is not passed on, since the caller did not ask for it. */
  readonly dropsReport: boolean;
  readonly estimate: CallEstimate;
  /** Whether the model's prices show that it reasons. */
  readonly hasReasoningPrice: boolean;
  /** Whether tokens are held: not for images that are paid by their number. */
  readonly holdsTokens: boolean;
  /** Whether texts may go into the log; the decision checks the user's consent. */
  readonly isLogged: boolean;
  /** The amounts to hold, and for whom. */
  readonly hold: z.output<typeof holdInput>;
  /** What fitting needs; null for a call that does not ask for it. */
  readonly fitting: Fitting | null;
  /** Gives back the memory that the body takes. */
  readonly give: () => void;
}

/** The source of each member of the hold. */
const SOURCES: Readonly<Record<string, string>> = {
  event: "X-Holdfast-Event",
  metadata: "X-Holdfast-Metadata",
  runId: "X-Holdfast-Run",
};

/** A body with the settings by which it was read. */
interface ReadBody {
  readonly body: CallBody;
  readonly type: string;
  readonly isLogged: boolean;
  readonly give: () => void;
}

/** Reads a call. */
export async function readCall(
  request: Request,
  kind: CallKind,
  { caller, endUser }: Pick<Admitted<unknown>, "caller" | "endUser">,
): Promise<ReadCall> {
  const { body, ...read } = await readBody(request, kind, caller);
  try {
    return { ...checkCall(request, kind, body, caller.realm.catalog, endUser), ...read };
  } catch (error) {
    read.give();
    throw error;
  }
}

/** A call that is neither held nor counted. */
interface PlainCall extends Pick<ReadCall, "bytes" | "type" | "give"> {
  readonly model: string;
}

/** Reads a call that is neither held nor counted: it names a model and no user. */
export async function readPlainCall(
  request: Request,
  kind: CallKind,
  { caller }: Pick<Admitted<unknown>, "caller">,
): Promise<PlainCall> {
  const { body: { call, forbidden, bytes }, give, type } = await readBody(request, kind, caller);
  try {
    const { model } = checkNamed(
      { model: call.model ?? undefined },
      {},
      z.object({ model: holdInput.shape.model }),
    );
    refuseModel(model, caller.realm.catalog);
    if (forbidden !== null) throw invalidMember(forbidden.path, forbidden.message);
    return { model, bytes, give, type };
  } catch (error) {
    give();
    throw error;
  }
}

async function readBody(request: Request, { shape, takesForm }: CallKind, caller: Caller): Promise<ReadBody> {
  const type = request.headers.get("content-type");
  const boundary = takesForm === true ? boundaryOf(type) : null;
  const { give, ...sent } = await readBytes(request, rulesOf(caller, boundary !== null));
  try {
    const { promptLogging: isLogged, gateway } = caller.realm.catalog;
    const { allowStoredObjects: storedObjects, allowServerTools: serverTools } = gateway;
    const fits = request.headers.has(FIT_HEADER);
    const body = await readAside(sent, { shape, isLogged, boundary, storedObjects, serverTools, fits });
    return { body, type: boundary === null ? "application/json" : type as string, isLogged, give };
  } catch (error) {
    give();
    throw error;
  }
}

function rulesOf({ app }: Caller, isForm: boolean): BodyRules {
  const { bodyBytesMax: bytesMax, structureMax } = GATEWAY_LIMITS;
  return {
    pot: KEYED_POT,
    appId: app.record.appId,
    bytesMax,
    structureMax: isForm ? null : structureMax,
    checkTexts: refuseForbiddenText,
  };
}

function checkCall(
  request: Request,
  kind: CallKind,
  { call, estimate, prompt, forbidden, bytes, dropsReport, fitting }: CallBody,
  catalog: Catalog,
  endUser: EndUser | null,
): Omit<ReadCall, keyof Omit<ReadBody, "body">> {
  if (call.background === true) {
    throw invalidMember("background", "must not be true: the answer could not be metered");
  }
  if ("path" in estimate) throw invalidMember(estimate.path, estimate.message);
  const named = headerText(request, "X-Holdfast-User");
  const model = call.model ?? undefined;
  const row = typeof model === "string" ? catalog.models.get(model) : undefined;
  const holdsTokens = estimate.images === null || row === undefined || row.amountMode === "per_token";
  const members: Members = {
    userId: endUser === null ? named ?? call.user ?? undefined : ownUser(endUser, [named, call.user]),
    event: headerText(request, "X-Holdfast-Event") ?? kind.event,
    metadata: { ...metadataOf(request), model },
    model,
    count: estimate.images,
    ...holdsTokens ? tokensOf(estimate) : NO_TOKENS,
    prompt,
    runId: headerText(request, "X-Holdfast-Run"),
    fit: fitting === null ? null : fitIn(headerText(request, FIT_HEADER) ?? "", fitting, model),
  };
  const isByHeader = named !== null || kind.shape === "messages";
  const hold = checkNamed(members, { ...SOURCES, userId: isByHeader ? USER_HEADER : "user" }, holdInput);
  refuseModel(hold.model, catalog);
  if (forbidden !== null) throw invalidMember(forbidden.path, forbidden.message);
  const hasReasoningPrice = reasons(hold.model, catalog);
  const asked = { kind, model: hold.model, estimate, hasReasoningPrice, holdsTokens, hold };
  return { ...asked, bytes, dropsReport, fitting };
}

/** Whether the prices of a model show that it reasons. */
function reasons(model: string, { models }: Catalog): boolean {
  const prices = models.get(model)?.prices;
  return prices !== undefined && prices.reasoning !== prices.output;
}

/** Returns a call with the model and the limit that it was fitted to, and the header of the answer that names them. */
export function fittedTo(
  read: ReadCall,
  { model, maxOutputTokens }: Fitted,
  catalog: Catalog,
): readonly [ReadCall, Readonly<Record<string, string>>] {
  const { answers, places } = read.fitting as Fitting;
  // What is held may be some tokens more than the answers can have together.
  const limit = Math.floor(maxOutputTokens / answers);
  const estimate = { ...read.estimate, maxOutputTokens: amountOf(maxOutputTokens) };
  const bytes = fittedBytes(read.bytes, places, { model, limit });
  const hasReasoningPrice = reasons(model, catalog);
  return [{ ...read, model, estimate, hasReasoningPrice, bytes }, fittedHeader(model, limit)];
}

const USER_HEADER = "X-Holdfast-User";
const NO_TOKENS = { inputTokens: 0, maxOutputTokens: null, cacheWriteTokens: 0, cacheWrite1hTokens: 0 };

function tokensOf(estimate: CallEstimate) {
  return {
    inputTokens: numberOf(estimate.inputTokens),
    maxOutputTokens: estimate.maxOutputTokens === null ? null : numberOf(estimate.maxOutputTokens),
    cacheWriteTokens: numberOf(estimate.cacheWriteTokens),
    cacheWrite1hTokens: numberOf(estimate.cacheWrite1hTokens),
  };
}

/** The id that a call with a user's key names, an alias at most: the owner checks that it is the key's user. */
function ownUser({ userId }: EndUser, named: readonly unknown[]): unknown {
  const others = new Set(named.filter((id) => id != null && id !== userId));
  if (others.size > 1) throw new Refused("forbidden", "The key acts for its own user alone");
  return [...others][0] ?? userId;
}

/** Refuses a model that the app's settings do not allow, like one that is not there. */
export function refuseModel(model: string, catalog: Catalog): void {
  if (!allowsModel(catalog, model)) {
    const message = "is not among gateway.models of the catalog";
    throw new Refused("not_found", `model: ${message}`, [{ path: "model", message }]);
  }
  if (catalog.gateway.budgetCents !== null && catalog.models.get(model) === undefined) {
    throw invalidMember("model", "has no price in the catalog, which gateway.budgetCents needs");
  }
}

/** Checks members that have sources outside of the body. A fault names the source of its member. */
function checkNamed<Schema extends z.ZodType>(
  members: Members,
  sources: Readonly<Record<string, string>>,
  schema: Schema,
): z.output<Schema> {
  try {
    return checkMembers(schema, members);
  } catch (error) {
    const { refusal } = error as Refused;
    const [fault] = (refusal?.details ?? []) as { path: string; message: string }[];
    if (fault === undefined) throw error;
    const path = sources[fault.path] ?? fault.path;
    const isUser = fault.path === "userId" && members.userId === undefined;
    const required = path === USER_HEADER ? "is required" : `is required, or the header ${USER_HEADER}`;
    throw invalidMember(path, isUser ? required : fault.message);
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
