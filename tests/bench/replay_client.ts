// One call of a replay, sent with an Idempotency-Key. When the service asks to retry later, or the connection broke, it
// is sent again under the same key, a bounded number of times, so that no call counts twice.

import { messageOf } from "../../src/process/log.ts";

/** The outcome of a call. */
export type CallOutcome<Data> =
  | { readonly ok: true; readonly data: Data }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** Where and how calls go. */
export interface CallSettings {
  readonly url: string;
  readonly key: string;
  readonly retriesMax: number;
  /** Once aborted, calls in flight still get their answers, but nothing is sent again. */
  readonly stop: AbortSignal;
  onRetry(): void;
}

/** The code of a call without an answer. */
export const NO_ANSWER = "no_answer";
/** The code of an answer from another program. */
export const STRANGE_ANSWER = "strange_answer";

const CALL_TIMEOUT_MS = 30_000;
const RETRY_AFTER_MAX_S = 30;
const BROKEN_PAUSE_MS = 1_000;

/** Posts a body under `/api/v1`. */
export async function post<Data>(
  settings: CallSettings,
  path: string,
  idempotencyKey: string,
  body: unknown,
): Promise<CallOutcome<Data>> {
  const init: RequestInit = {
    method: "POST",
    headers: {
      "authorization": `Bearer ${settings.key}`,
      "content-type": "application/json",
      "idempotency-key": idempotencyKey,
    },
    body: JSON.stringify(body),
  };
  for (let retries = 0;; retries++) {
    const { outcome, pauseMs } = await send<Data>(`${settings.url}/api/v1${path}`, init);
    if (pauseMs === null || retries >= settings.retriesMax || settings.stop.aborted) return outcome;
    settings.onRetry();
    await sleep(pauseMs, settings.stop);
  }
}

/** Reads something under `/api/v1` once, to learn whether the service is there and knows the key. */
export async function probe(url: string, key: string): Promise<CallOutcome<unknown>> {
  const headers = { authorization: `Bearer ${key}` };
  return (await send(`${url}/api/v1/plans`, { method: "GET", headers })).outcome;
}

/** Waits for a time, or until the signal aborts. */
export function sleep(ms: number, stop: AbortSignal): Promise<void> {
  if (stop.aborted || ms <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener("abort", end);
  });
}

/** Sends once; the pause says how long to wait before it makes sense to send again. */
async function send<Data>(
  url: string,
  init: RequestInit,
): Promise<{ outcome: CallOutcome<Data>; pauseMs: number | null }> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, { ...init, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
    text = await response.text();
  } catch (error) {
    return { outcome: failed(NO_ANSWER, messageOf(error)), pauseMs: BROKEN_PAUSE_MS };
  }
  return { outcome: outcomeOf<Data>(response.status, text), pauseMs: pauseOf(response) };
}

function pauseOf({ status, headers }: Response): number | null {
  const seconds = headers.get("retry-after");
  const isLater = (status === 503 || status === 429) && seconds !== null && /^\d+$/.test(seconds);
  return isLater ? Math.min(Number(seconds), RETRY_AFTER_MAX_S) * 1000 : null;
}

function outcomeOf<Data>(status: number, text: string): CallOutcome<Data> {
  try {
    const { ok, data, error } = JSON.parse(text);
    if (ok === true && status === 200) return { ok, data };
    if (ok === false && typeof error.code === "string") return failed(error.code, String(error.message));
  } catch {
    // Not JSON, or not of our form: some other program answered.
  }
  return failed(STRANGE_ANSWER, `Status ${status} without an answer of the service`);
}

function failed(code: string, message: string): { ok: false; code: string; message: string } {
  return { ok: false, code, message };
}
