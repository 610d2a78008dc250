// Input schemas of reserve, commit, release, track and can-use. Specification, "Reservations"; section 5 of the
// decisions.

import { z } from "zod";
import {
  amount,
  cutText,
  endUserId,
  eventName,
  loggedText,
  metadata,
  positiveAmount,
  signedAmount,
} from "routes/schemas/fields.ts";
import { REQUEST_LIMITS } from "src/limits.ts";

const size = {
  quantity: positiveAmount.nullish(),
  count: positiveAmount.nullish(),
  inputTokens: amount.nullish(),
  inputCostCents: amount.nullish(),
};

const call = { userId: endUserId, event: eventName, metadata: metadata.nullish(), ...size };

export const canUseInput = z.object(call);

export const reserveInput = z.object({
  ...call,
  ttlSeconds: z.number().min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).nullish(),
  prompt: loggedText.nullish(),
});

export const trackInput = z.object({
  ...call,
  costCents: amount.nullish(),
  prompt: loggedText.nullish(),
  response: loggedText.nullish(),
});

const extra = z.object({
  count: signedAmount.nullish(),
  tokens: signedAmount.nullish(),
  outputTokens: signedAmount.nullish(),
  cents: signedAmount.nullish(),
  outputCostCents: signedAmount.nullish(),
  seconds: signedAmount.nullish(),
});

const actual = z.object({
  count: amount.nullish(),
  tokens: amount.nullish(),
  cents: amount.nullish(),
  seconds: amount.nullish(),
});

/** The id of a reservation; one that was never given out is `not_found`, whatever its form. */
const reservationId = z.string().min(1, "must not be empty").max(REQUEST_LIMITS.idLengthMax);

export const commitInput = z.object({
  reservationId,
  extra: extra.nullish(),
  actual: actual.nullish(),
  costCents: amount.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  for (const message of correctionFaults(input)) {
    context.addIssue({ code: "custom", message, path: ["extra"] });
  }
});

export const releaseInput = z.object({
  reservationId,
  reason: cutText(REQUEST_LIMITS.reasonLengthMax).nullish(),
  errorCode: cutText(REQUEST_LIMITS.errorCodeLengthMax).nullish(),
  response: loggedText.nullish(),
});

/** Members of a commit that contradict each other. Specification, "POST /v1/commit", rules 1 and 2. */
function* correctionFaults(input: {
  readonly extra?: z.infer<typeof extra> | null | undefined;
  readonly actual?: z.infer<typeof actual> | null | undefined;
  readonly costCents?: number | null | undefined;
}): Iterable<string> {
  const extras = input.extra ?? {};
  const actuals = input.actual ?? {};
  if (isSet(extras.tokens) && isSet(extras.outputTokens)) {
    yield "tokens and outputTokens name the same amount";
  }
  if (isSet(extras.cents) && isSet(extras.outputCostCents)) {
    yield "cents and outputCostCents name the same amount";
  }
  const cents = isSet(extras.cents) || isSet(extras.outputCostCents);
  const given = {
    count: isSet(extras.count),
    tokens: isSet(extras.tokens) || isSet(extras.outputTokens),
    cents,
    seconds: isSet(extras.seconds),
  };
  for (const unit of ["count", "tokens", "cents", "seconds"] as const) {
    if (given[unit] && isSet(actuals[unit])) yield `extra and actual are both set for ${unit}`;
  }
  if (isSet(input.costCents) && (cents || isSet(actuals.cents))) {
    yield "costCents cannot be combined with a cents extra or actual";
  }
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
