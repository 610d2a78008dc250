// What endpoints answer, as values: the envelope of every JSON answer, written as text once, when the answer is
// complete. The code that an answer is counted by goes along with its text, so nobody reads it out of the text again.

import type { WireAnswer } from "../../actors/idempotency.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import type { Result } from "../../src/domain/state/result.ts";
import type { AnswerCode } from "../../src/process/counts/request_counts.ts";
import { NOT_KEPT, STATUS } from "./errors.ts";

/** The envelope of an answer: data, or an error. */
export type Answer =
  | { readonly ok: true; readonly data: unknown }
  | { readonly ok: false; readonly error: Refusal };

/** An answer as text. */
export interface WrittenAnswer extends WireAnswer {
  readonly code: AnswerCode;
  /** Whether this is the first answer to an earlier call with the same idempotency key. */
  readonly isReplayed?: boolean;
  /** The id under which another member answered; left out where this process did. */
  readonly requestId?: string;
}

/** An answer that is about a user, where no turn says so: kept as a first answer, it is erased with that user. */
export interface AnswerAbout {
  readonly answer: Answer;
  readonly userKey: UserKey | null;
}

/** What a handler gives back; a text where a turn kept it as a first answer together with its changes. */
export type Handled = Answer | AnswerAbout | WrittenAnswer;

/** An answer with data. */
export function success(data: unknown): Answer {
  return { ok: true, data };
}

/** The answer of a result. */
export function answerOf<Of>(result: Result<Of>, show: (answer: Of) => unknown): Answer {
  return result.ok ? { ok: true, data: show(result.answer) } : { ok: false, error: result.refusal };
}

/** The code of an answer, and the status that it has on the wire. */
export function headOf(answer: Answer): { readonly code: AnswerCode; readonly status: number } {
  if (answer.ok) return { code: "ok", status: 200 };
  const { code } = answer.error;
  return { code, status: STATUS[code] };
}

/** An answer as text. */
export function write(answer: Answer): WrittenAnswer {
  const body = JSON.stringify(answer);
  if (answer.ok) return { code: "ok", status: 200, body };
  const { code } = answer.error;
  return { code, status: STATUS[code], body };
}

/** What a handler gave back, as text. */
export function writeHandled(handled: Handled): WrittenAnswer {
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
export function readAnswer({ body }: WrittenAnswer): Answer {
  return JSON.parse(body) as Answer;
}
