// Selects the answers that the log of failed requests records, and their parts.

import type { RequestLog } from "../../src/audit/request_log.ts";
import { keyOfUsers, type RequestKey, shownBody, unknownKey } from "../../src/domain/state/failed_request.ts";
import type { RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Clock } from "../../src/process/clock.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { type EndUser, presentedKey } from "./auth.ts";
import { STATUS } from "./errors.ts";
import type { Members } from "./json_body.ts";

/** Where failed requests are recorded. */
export interface FailureSource {
  /** The running term that knows a key, else any; null while this process may not answer. */
  servingWith(presented: string): FailureWorld | null;
}

interface FailureWorld {
  readonly registry: Pick<Registry, "keyNamed">;
  readonly clock: Clock;
  readonly requestLog: Pick<RequestLog, "add">;
}

/** An answer with a 4xx or 5xx status. */
interface Failure {
  readonly route: string;
  readonly method: string;
  readonly path?: string;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  /** The number of similar calls of a batch; absent for one request. */
  readonly count?: number;
}

/** What a request sent. */
export interface Sent {
  /** Those of path, query and body; null where they were not read. */
  readonly members: Members | null;
  /** The user of its token or key. */
  readonly user?: EndUser | null;
  /** A header that has the key, if it is there; else it is the bearer token. */
  readonly keyHeader?: string | null;
}

/** Records a failed request of a caller with an API key. */
export function recordFailure(
  source: FailureSource,
  request: Request,
  failure: Failure,
  { members, user = null, keyHeader = null }: Sent,
): void {
  const presented = presentedKey(request, keyHeader);
  const serving = presented === null ? null : source.servingWith(presented);
  if (serving === null || presented === null) return;
  const { registry, clock, requestLog } = serving;
  const at = clock.now();
  const { key, aheadMs } = keyOf(registry, presented, failure.code, at);
  requestLog.add({
    ...failure,
    key,
    at,
    realmAt: at + aheadMs,
    path: failure.path ?? pathOf(request),
    userId: user?.userId ?? userOf(members),
    body: members === null ? unreadBody(request, failure.code) : bodyOf(members),
  });
}

/** Names the key of a request. A key of a user that was refused may be of anyone's making. */
function keyOf(
  registry: Pick<Registry, "keyNamed">,
  presented: string,
  code: string,
  at: number,
): { readonly key: RequestKey; readonly aheadMs: number } {
  const named = registry.keyNamed(presented);
  if (named === null || named.key.class === "user" && code === "invalid_key") {
    return { key: unknownKey(presented), aheadMs: 0 };
  }
  const { app, key: { class: keyClass, keyId, mode }, prefix } = named;
  const { appId } = app.record;
  const key = keyClass === "user" ? keyOfUsers(appId, mode) : { appId, mode, keyId, keyPrefix: prefix };
  return { key, aheadMs: app.realms[mode].now() - at };
}

/** The result of a call in the answer to a batch. */
interface CallResult {
  readonly ok: boolean;
  readonly status?: number;
  readonly error?: { readonly code: RefusalCode; readonly message: string };
}

/** Failed calls of a batch with the same status and code; the details are of the last one. */
interface FailedCalls extends Pick<Failure, "status" | "code" | "message"> {
  readonly count: number;
  readonly members: Members | null;
}

/**
 * Finds the calls of a batch that failed.
 *
 * @param body the answer to the batch
 * @param sent the members of its request, with the list of its calls
 */
export function failedCallsOf(body: string, sent: Members): readonly FailedCalls[] {
  if (!body.includes('"ok":false')) return [];
  const { data } = JSON.parse(body) as { readonly data: { readonly results: readonly CallResult[] } };
  const [name, calls] = Object.entries(sent).find(([, value]) => Array.isArray(value)) ?? ["", []];
  const found = new Map<string, FailedCalls>();
  for (
    const [place, { error, status = error === undefined ? 200 : STATUS[error.code] }] of data.results
      .entries()
  ) {
    if (error === undefined) continue;
    const { code, message } = error;
    const members = (calls as readonly unknown[])[place];
    const kind = `${status} ${code}`;
    found.set(kind, {
      status,
      code,
      message: `${name}[${place}]: ${message}`,
      members: typeof members === "object" ? members as Members | null : null,
      count: (found.get(kind)?.count ?? 0) + 1,
    });
  }
  return [...found.values()];
}

function pathOf({ url }: Request): string {
  const [path = ""] = url.replace(/^[^/]*\/\/[^/]*/, "").split(/[?#]/, 1);
  return path;
}

/** The members that name the user of a call. */
const USERS = ["userId", "distinctId", "id", "sourceId"];

function userOf(members: Members | null): string | null {
  if (members === null) return null;
  const options = members["options"] as Members | null | undefined;
  const ids = USERS.map((name) => members[name] ?? options?.[name]);
  return ids.find((id) => typeof id === "string") as string | undefined ?? null;
}

function bodyOf(members: Members): string | null {
  const text = shownBody(members);
  return text === "{}" ? null : text;
}

/** Codes of answers to a request with a body that was read, or would have been read. */
const OF_BODY: ReadonlySet<string> = new Set(["invalid_request", "payload_too_large"]);

/** A body that is not a JSON object is shown by its length. */
function unreadBody({ headers }: Request, code: string): string | null {
  const bytes = Number(headers.get("content-length") ?? 0);
  return OF_BODY.has(code) && bytes > 0 ? `${bytes} bytes` : null;
}
