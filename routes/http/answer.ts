// The forms of an answer: a value in the envelope of every JSON answer, or its text. A value is written once, when the
// answer is complete. Its code goes along with the text, so that the text is not parsed for it.

import type { Idempotency, IdempotentCall, WireAnswer } from "../../actors/idempotency.ts";
import type { Term } from "../../actors/term.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import type { Result } from "../../src/domain/state/result.ts";
import type { AnswerCode } from "../../src/process/counts/request_counts.ts";
import type { Session } from "../../src/storage/database.ts";
import { insertAnswer } from "../../src/storage/stores/answer_store.ts";
import { NOT_KEPT, STATUS } from "./errors.ts";

/** An answer as a value: data, or an error. */
export type Answer<Data = unknown> =
  | { readonly ok: true; readonly data: Data }
  | { readonly ok: false; readonly error: Refusal };

/** Marks texts and responses with the type of their data. It exists only in types. */
declare const DATA: unique symbol;

/** An answer as text. */
export interface WrittenAnswer<Data = unknown> extends WireAnswer {
  readonly [DATA]?: Data;
  readonly code: AnswerCode;
  /** Whether this is the first answer to an earlier call with the same idempotency key. */
  readonly isReplayed?: boolean;
  /** What the caller's later idempotency keys may begin with; left out where this one began so. */
  readonly keyPrefix?: string | undefined;
  /** The request id under which another process answered; left out where this process did. */
  readonly requestId?: string;
}

/** A response of its own, for an answer without the envelope; `Data` is the type of the JSON in its body. */
export type RawAnswer<Data> = Response & { readonly [DATA]?: Data };

/** What a handler returns: a value, or a text where the answer was kept under an idempotency key already. */
export type Handled<Data = unknown> = Answer<Data> | WrittenAnswer<Data>;

/** An answer with data. The handler's return type gives `Data`, so that an unknown member does not compile. */
export function success<Data>(data: NoInfer<Data>): Answer<Data> {
  return { ok: true, data };
}

/** Returns the answer of a refused call. */
export function failure(refusal: Refusal): Answer<never> {
  return { ok: false, error: refusal };
}

/** Returns the answer of a result. */
export function answerOf<Of, Data>(result: Result<Of>, show: (answer: Of) => NoInfer<Data>): Answer<Data> {
  return result.ok ? { ok: true, data: show(result.answer) } : failure(result.refusal);
}

/** Returns the code of an answer. */
export function codeOf(answer: Answer): AnswerCode {
  return answer.ok ? "ok" : answer.error.code;
}

/** Returns the HTTP status of an answer. */
export function statusOf(answer: Answer): number {
  return answer.ok ? 200 : STATUS[answer.error.code];
}

/** Returns an answer as text. */
export function write<Data>(handled: Handled<Data>): WrittenAnswer<Data> {
  if (!("ok" in handled)) return handled;
  const body = JSON.stringify(handled);
  if (handled.ok) return { code: "ok", status: 200, body };
  const { code } = handled.error;
  return { code, status: STATUS[code], body };
}

/** Returns an answer as a value. */
export function valueOf<Data>(handled: Handled<Data> | Response): Answer<Data> {
  if (handled instanceof Response) throw new Error("The call has an answer without the JSON envelope");
  return "ok" in handled ? handled : JSON.parse(handled.body) as Answer<Data>;
}

/** Whether answers of a code are kept as first answers. */
export function isKept(code: AnswerCode): boolean {
  return code === "ok" || !NOT_KEPT.has(code);
}

/**
 * Keeps an answer as the first one under an idempotency key, unless its code is not kept.
 *
 * @param userKey the user with whom the answer is erased; null for an answer about no user
 */
export async function keepFirst<Data>(
  term: Pick<Term, "keepAnswer">,
  call: IdempotentCall,
  answer: Answer<Data>,
  userKey: UserKey | null,
): Promise<WrittenAnswer<Data>> {
  const written = write(answer);
  if (isKept(written.code)) await term.keepAnswer({ ...call, ...written }, userKey);
  return written;
}

/** Keeps the first answer of a call in a transaction of the call, together with its effect. */
export class InsideKeeper<Data> {
  /** The answer that the last transaction kept; null for none. */
  written: WrittenAnswer<Data> | null = null;
  readonly #idempotency: Pick<Idempotency, "keep">;
  readonly #call: IdempotentCall;

  constructor({ idempotency }: KeepingTerm, call: IdempotentCall) {
    this.#idempotency = idempotency;
    this.#call = call;
  }

  /** Keeps an answer with data; `session` is the transaction. */
  async keep(session: Session, data: Data): Promise<void> {
    const written = write<Data>({ ok: true, data });
    await insertAnswer(session, this.#idempotency.keep({ ...this.#call, ...written }, null));
    this.written = written;
  }
}

/** The part of a term that makes rows of first answers. */
export interface KeepingTerm {
  readonly idempotency: Pick<Idempotency, "keep">;
}

/** Returns a first answer as text. The tables keep only its status and body. */
export function readKept({ status, body }: WireAnswer): WrittenAnswer {
  return { code: status === 200 ? "ok" : JSON.parse(body).error.code, status, body, isReplayed: true };
}
