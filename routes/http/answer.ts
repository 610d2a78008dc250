// What endpoints answer, as values: the envelope of every JSON answer, written as text once, when the answer is
// complete. The code that an answer is counted by goes along with its text, so nobody reads it out of the text again.

import type { WireAnswer } from "../../actors/idempotency.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import type { Result } from "../../src/domain/state/result.ts";
import type { AnswerCode } from "../../src/process/counts/request_counts.ts";
import { NOT_KEPT, STATUS } from "./errors.ts";

/** The envelope of an answer: data, or an error. */
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
  /** The id under which another member answered; left out where this process did. */
  readonly requestId?: string;
}

/** An answer that is about a user, where no turn says so: kept as a first answer, it is erased with that user. */
export interface AnswerAbout<Data = unknown> {
  readonly answer: Answer<Data>;
  readonly userKey: UserKey | null;
}

/** A response of its own, for an answer without the envelope; `Data` is the type of the JSON in its body. */
export type RawAnswer<Data> = Response & { readonly [DATA]?: Data };

/** What a handler gives back; a text where a turn kept it as a first answer together with its changes. */
export type Handled<Data = unknown> = Answer<Data> | AnswerAbout<Data> | WrittenAnswer<Data>;

/** An answer with data. The handler's return type gives `Data`, so that an unknown member does not compile. */
export function success<Data>(data: NoInfer<Data>): Answer<Data> {
  return { ok: true, data };
}

/** The answer of a refused call. */
export function failure(refusal: Refusal): Answer<never> {
  return { ok: false, error: refusal };
}

/** The answer of a result. */
export function answerOf<Of, Data>(result: Result<Of>, show: (answer: Of) => NoInfer<Data>): Answer<Data> {
  return result.ok ? { ok: true, data: show(result.answer) } : failure(result.refusal);
}

/** The code of an answer, and the status that it has on the wire. */
export function headOf(answer: Answer): { readonly code: AnswerCode; readonly status: number } {
  if (answer.ok) return { code: "ok", status: 200 };
  const { code } = answer.error;
  return { code, status: STATUS[code] };
}

/** An answer as text. */
export function write<Data>(answer: Answer<Data>): WrittenAnswer<Data> {
  const body = JSON.stringify(answer);
  if (answer.ok) return { code: "ok", status: 200, body };
  const { code } = answer.error;
  return { code, status: STATUS[code], body };
}

/** What a handler gave back, as text. */
export function writeHandled<Data>(handled: Handled<Data>): WrittenAnswer<Data> {
  if ("ok" in handled) return write(handled);
  return "body" in handled ? handled : write(handled.answer);
}

/** Whether answers of a code are kept as first answers. */
export function isKept(code: AnswerCode): boolean {
  return code === "ok" || !NOT_KEPT.has(code);
}

/** A first answer that was kept, which the tables have as a status and a text. */
export function readKept({ status, body }: WireAnswer): WrittenAnswer {
  return { code: status === 200 ? "ok" : JSON.parse(body).error.code, status, body, isReplayed: true };
}

/** A written answer as a value. */
export function readAnswer<Data>({ body }: WrittenAnswer<Data>): Answer<Data> {
  return JSON.parse(body) as Answer<Data>;
}
