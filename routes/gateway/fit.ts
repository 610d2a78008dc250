// The headers of fit: with one a caller asks that its call is made smaller until it is allowed; the other, of the answer, has
// the model and the limit that were sent on.

import { fit, fitFaults } from "../contract/fit.ts";
import type { z } from "zod";
import { invalidMember, Refused } from "../http/errors.ts";
import { checkMembers } from "../http/input.ts";
import type { Fitting } from "./call_body.ts";

/** `<minOutputTokens>[;model,model]`, in tokens of one answer. */
export const FIT_HEADER = "X-Holdfast-Fit";
/** `<model>;<maxOutputTokens>`, in tokens of one answer. */
const FITTED_HEADER = "x-holdfast-fitted";

const FORM = /^([0-9]+)[ \t]*(?:;(.*))?$/;
// A header can't have them, so the answer could not name such a model.
// deno-lint-ignore no-control-regex -- they are what is looked for
const CONTROLS = /[\x00-\x1f\x7f]/;

/**
 * Reads what a call asks for. A model is named as in a body; white space around it does not count.
 *
 * @param model that of the body
 * @returns the fit of all answers together
 * @throws Refused with `invalid_request`
 */
export function fitIn(text: string, { limit, answers }: Fitting, model: unknown): z.output<typeof fit> {
  const [, least, names] = FORM.exec(text) ?? [];
  if (least === undefined) throw invalidMember(FIT_HEADER, "must be <minOutputTokens>[;model,model]");
  if (limit === null) {
    const members = "max_tokens, max_completion_tokens or max_output_tokens";
    throw invalidMember(FIT_HEADER, `needs a limit of the answer in the call, such as ${members}`);
  }
  if (typeof model === "string" && CONTROLS.test(model)) {
    throw invalidMember("model", `must not contain control characters with ${FIT_HEADER}`);
  }
  const models = names?.split(",").map((name) => name.trim());
  const asked = checked({ minOutputTokens: Number(least), ...models === undefined ? {} : { models } });
  const [fault] = fitFaults({ maxOutputTokens: limit, fit: asked });
  if (fault !== undefined) throw faultOf(fault.path.slice(1).join("."), fault.message);
  return { ...asked, minOutputTokens: asked.minOutputTokens * answers };
}

function checked(asked: Record<string, unknown>): z.output<typeof fit> {
  try {
    return checkMembers(fit, asked);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const [fault] = error.refusal.details as { path: string; message: string }[];
    throw faultOf(fault?.path ?? "", fault?.message ?? "");
  }
}

function faultOf(path: string, message: string): Refused {
  return invalidMember(FIT_HEADER, `${path} ${message}`);
}

const encoder = new TextEncoder();

/** The header that says what a call was made to fit to: UTF-8, like those of requests. */
export function fittedHeader(model: string, limit: number): Readonly<Record<string, string>> {
  return { [FITTED_HEADER]: String.fromCharCode(...encoder.encode(`${model};${limit}`)) };
}
