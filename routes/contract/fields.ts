// Schemas of single members, and how amounts and times are read and written.

import { z } from "zod";
import { type Amount, amountOf } from "../../src/domain/values/amount.ts";
import type { Metadata } from "../../src/domain/values/match.ts";
import { FEATURE_LIMITS, type FeatureValue, isFeatureValue } from "../../src/domain/catalog/feature.ts";
import { TEXT_BYTES_MAX } from "../../src/domain/values/texts.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** JSON Schemas for the API reference, of schemas with checks that JSON Schema cannot be derived from. */
export const SHOWN_AS = z.registry<Record<string, unknown>>();

/** Text of at most so many code points. */
export function textOf(max: number) {
  return z.string().refine((text) => isLength(text, 0, max), `must have at most ${max} characters`)
    .register(SHOWN_AS, { type: "string", minLength: 0, maxLength: max });
}

/** Replaces bytes that are not UTF-8 when a text is decoded. */
const REPLACED = "\uFFFD";

/** An id or a name of 1 to so many code points. U+FFFD is refused: the caller may have sent another id. */
export function nameOf(max: number) {
  return z.string().refine(
    (text) => isName(text, max),
    {
      error: ({ input }) =>
        String(input).includes(REPLACED) && isLength(String(input), 1, max)
          ? "must not contain U+FFFD, which replaces bytes that are not UTF-8"
          : `must have 1 to ${max} characters`,
    },
  ).register(SHOWN_AS, { type: "string", minLength: 1, maxLength: max });
}

/** An id that only this service creates: text of 1 to so many code points. */
export function anyId(max: number) {
  return z.string().refine((text) => isLength(text, 1, max), `must have 1 to ${max} characters`)
    .register(SHOWN_AS, { type: "string", minLength: 1, maxLength: max });
}

/** Whether a value fits `anyId`. */
export function isAnyId(value: unknown, max: number): boolean {
  return typeof value === "string" && isLength(value, 1, max);
}

/** The id of an end user. */
export const endUserId = nameOf(REQUEST_LIMITS.idLengthMax);

/** Live or test mode. */
export const mode = z.enum(["live", "test"]);

/** The path members of a call for one app. */
export const appPath = { appId: z.string() };

/** Whether a value fits `endUserId`. */
export function isEndUserId(value: unknown): boolean {
  return typeof value === "string" && isName(value, REQUEST_LIMITS.idLengthMax);
}

function isName(text: string, max: number): boolean {
  return isLength(text, 1, max) && !text.includes(REPLACED);
}

/** An event type. */
export const eventName = z.string().refine(
  isEventName,
  'must be an event type of 1 to 200 characters without "*", U+FFFD or control characters',
).register(SHOWN_AS, {
  type: "string",
  minLength: 1,
  maxLength: REQUEST_LIMITS.eventLengthMax,
  pattern: "^[^*\\u0000-\\u001f\\u007f-\\u009f]+$",
});

/** Whether a value fits `eventName`. */
export function isEventName(value: unknown): boolean {
  return typeof value === "string" && isLength(value, 1, REQUEST_LIMITS.eventLengthMax) &&
    !/[*\p{Cc}\uFFFD]/u.test(value);
}

/** An event type, or a pattern of event types. */
export const eventPattern = z.string().refine(
  (text) =>
    isLength(text, 1, REQUEST_LIMITS.eventLengthMax) && !/[\p{Cc}\uFFFD]/u.test(text) &&
    !text.slice(0, -1).includes("*"),
  'must be an event type, a prefix with a final "*", or "*"',
).register(SHOWN_AS, {
  type: "string",
  minLength: 1,
  maxLength: REQUEST_LIMITS.eventLengthMax,
  pattern: "^[^*\\u0000-\\u001f\\u007f-\\u009f]*\\*?$",
});

/** An integer in a query string. */
export function wholeNumber(min: number, max: number) {
  return z.string().regex(/^\d{1,9}$/, `must be an integer from ${min} to ${max}`).transform(Number)
    .refine((value) => value >= min && value <= max, `must be an integer from ${min} to ${max}`)
    .register(SHOWN_AS, { type: "integer", minimum: min, maximum: max });
}

/** How many rows a page has. */
export function pageLimit(most: number, byDefault: number) {
  return wholeNumber(1, most).optional().describe(`1 to ${most}, default ${byDefault}`);
}

/** The page of a list by a cursor. */
export function cursorPage(most: number, byDefault: number) {
  return {
    limit: pageLimit(most, byDefault),
    cursor: z.string().optional().describe("The cursor of the previous page"),
  };
}

/** The page of a list by an offset. */
export const feedPage = {
  limit: pageLimit(REQUEST_LIMITS.feedLimitMax, REQUEST_LIMITS.feedLimitDefault),
  offset: wholeNumber(0, REQUEST_LIMITS.feedOffsetMax).optional()
    .describe(`0 to ${REQUEST_LIMITS.feedOffsetMax}, default 0`),
};

const HALF_OF_SMALLEST = 5e-7;
const size = z.number().max(REQUEST_LIMITS.amountMax);

/** An amount greater than 0, also after rounding to six decimal places. */
export const positiveAmount = size.refine(isPositive, "must be greater than 0")
  .register(SHOWN_AS, { type: "number", exclusiveMinimum: 0, maximum: REQUEST_LIMITS.amountMax });

/** Whether a value fits `positiveAmount`. */
export function isPositiveAmount(value: unknown): boolean {
  return typeof value === "number" && value <= REQUEST_LIMITS.amountMax && isPositive(value);
}

function isPositive(value: number): boolean {
  return value >= HALF_OF_SMALLEST;
}

/** An amount of zero or more. */
export const amount = size.min(0);

/** Whether a value fits `amount`. */
export function isAmount(value: unknown): boolean {
  return typeof value === "number" && value <= REQUEST_LIMITS.amountMax && value >= 0;
}

/** An amount of any sign. */
export const signedAmount = size.min(-REQUEST_LIMITS.amountMax);

const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const END_MS = Date.UTC(10_000, 0, 1);

/** A moment in ISO 8601 with its offset from UTC, or a date, as milliseconds. */
export const moment = z.union([z.iso.datetime({ offset: true }), z.iso.date()], {
  error: "must be a time in ISO 8601",
}).transform((text) => Date.parse(text)).refine(
  (at) => at >= EARLIEST_MS && at < END_MS,
  "must be in the years 1 to 9999",
).register(SHOWN_AS, {
  description: "A time in ISO 8601 with its offset from UTC, or a date",
  anyOf: [{ type: "string", format: "date-time" }, { type: "string", format: "date" }],
});

/** A free-form JSON object of bounded size. */
export const metadata = z.custom<Record<string, unknown>>(isObject, "must be an object")
  .transform((members, context): Metadata => {
    const read = readMetadata(members);
    if (read !== null) return read;
    context.addIssue({
      code: "custom",
      message: `must have at most ${REQUEST_LIMITS.metadataBytesMax} bytes as JSON`,
    });
    return { text: "{}", members };
  }).register(SHOWN_AS, {
    type: "object",
    additionalProperties: true,
    description: `A free-form object of at most ${REQUEST_LIMITS.metadataBytesMax} bytes as JSON`,
  });

/** Reads metadata; null for a value that does not fit. */
export function readMetadata(value: unknown): Metadata | null {
  if (!isObject(value)) return null;
  const text = serialize(value);
  if (text === null || byteLength(text) > REQUEST_LIMITS.metadataBytesMax) return null;
  return { text, members: value };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text that is cut if it is longer, not refused. */
export function cutAt(max: number) {
  return z.string().register(SHOWN_AS, { type: "string", description: `Cut after ${max} characters` });
}

/** A prompt or a response. It is cut if it is longer, not refused. */
export const loggedText = z.string().register(SHOWN_AS, {
  type: "string",
  description: `Cut after ${TEXT_BYTES_MAX} bytes of UTF-8`,
});

/** Reads an optional amount exactly. */
export function amountOrNull(value: number | null | undefined): Amount | null {
  return value === null || value === undefined ? null : amountOf(value);
}

const MINUTE_MS = 60_000;
const MINUTES_KEPT = 256;

/** A cache of formatted minutes, indexed by minute modulo its size. Most answers share the minutes of now and of windows. */
const minutes = Array.from({ length: MINUTES_KEPT }, () => ({ minute: NaN, text: "" }));

/** Formats a moment as answers have it. */
export function timeText(at: Millis): string {
  const minute = Math.floor(at / MINUTE_MS);
  const kept = minutes[((minute % MINUTES_KEPT) + MINUTES_KEPT) % MINUTES_KEPT] as {
    minute: number;
    text: string;
  };
  if (kept.minute !== minute) {
    kept.text = new Date(minute * MINUTE_MS).toISOString().slice(0, -"00.000Z".length);
    kept.minute = minute;
  }
  const rest = at - minute * MINUTE_MS;
  if (rest === 0) return `${kept.text}00.000Z`;
  const seconds = Math.floor(rest / 1000);
  return `${kept.text}${String(seconds).padStart(2, "0")}.${String(rest % 1000).padStart(3, "0")}Z`;
}

/** The same for a moment or null. */
export function timeTextOrNull(at: Millis | null): string | null {
  return at === null ? null : timeText(at);
}

function isLength(text: string, min: number, max: number): boolean {
  if (text.length < min) return false;
  return text.length <= max || (text.length <= max * 2 && [...text].length <= max);
}

function byteLength(text: string): number {
  return text.length * 3 <= REQUEST_LIMITS.metadataBytesMax
    ? text.length
    : new TextEncoder().encode(text).byteLength;
}

/** Returns JSON text, or null for a value that is nested too deeply. */
function serialize(value: unknown): string | null {
  try {
    return JSON.stringify(value);
  } catch {
    return null;
  }
}

/** Quotas by the ids of at most so many limit groups. A record schema would drop `__proto__` silently. */
export function quotasByGroup(max: number) {
  return z.unknown().refine(
    (value) => typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__"),
    'not a limit group of the plan: "__proto__"',
  ).refine(
    (value) => typeof value !== "object" || value === null || Object.keys(value).length <= max,
    `must name at most ${max} groups`,
  ).pipe(z.record(z.string(), z.object({ quota: amount }))).register(SHOWN_AS, {
    type: "object",
    description: "Quotas by group id",
    additionalProperties: {
      type: "object",
      properties: { quota: { type: "number", minimum: 0 } },
      required: ["quota"],
    },
  });
}

/** Reads quotas by group id; null and undefined are kept. */
export function quotasOf(limits: Record<string, { quota: number }> | null | undefined) {
  if (limits === undefined || limits === null) return limits;
  return Object.fromEntries(Object.entries(limits).map(([id, { quota }]) => [id, amountOf(quota)]));
}

const FEATURE_TYPES = [
  { type: "boolean" },
  { type: "number" },
  { type: "string", maxLength: FEATURE_LIMITS.textLengthMax },
  {
    type: "array",
    maxItems: FEATURE_LIMITS.listMax,
    items: { type: "string", maxLength: FEATURE_LIMITS.textLengthMax },
  },
];

/** The value of a feature. */
const featureValue = z.custom<FeatureValue>(
  isFeatureValue,
  `must be a boolean, a number, a string of at most ${FEATURE_LIMITS.textLengthMax} characters or an array of at ` +
    `most ${FEATURE_LIMITS.listMax} such strings`,
).register(SHOWN_AS, { anyOf: FEATURE_TYPES });

/** Values of features by key. A record schema would drop `__proto__` silently. */
export const featureValues = z.unknown().refine(
  (value) => typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__"),
  'not a feature of the catalog: "__proto__"',
).refine(
  (value) =>
    typeof value !== "object" || value === null || Object.keys(value).length <= FEATURE_LIMITS.keysMax,
  `must name at most ${FEATURE_LIMITS.keysMax} features`,
).pipe(z.record(z.string(), featureValue)).register(SHOWN_AS, {
  type: "object",
  description: "Values by the key of the feature",
  additionalProperties: { anyOf: FEATURE_TYPES },
});
