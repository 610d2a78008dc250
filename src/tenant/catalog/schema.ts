// The catalog format as zod schemas: the shape of each part. What must hold between the parts stands in check.ts.
// The format is the specification's `catalog.example.json`; section 3 of the decisions.

import { z } from "zod";
import { REQUEST_LIMITS } from "../../process/limits.ts";

/** Levels of an output schema; no model server takes as many. */
const SCHEMA_DEPTH_MAX = 100;

/** Text of 1 to 200 characters without control characters: ids, names and labels. */
const label = z.string().refine(isLabel, "must be a text of 1 to 200 characters without control characters")
  .meta({ minLength: 1, maxLength: REQUEST_LIMITS.idLengthMax });
const amount = z.number().min(0).max(REQUEST_LIMITS.amountMax);
const unit = z.enum(["count", "tokens", "seconds", "cents"]);
const pattern = z.string().refine(
  isPattern,
  'must be an event name, a prefix followed by one final "*", or "*"',
).meta({ minLength: 1, maxLength: REQUEST_LIMITS.eventLengthMax });

const matchRule = z.object({
  event: pattern,
  metadata: z.unknown().refine(hasNoPrototype, 'must not have the member "__proto__"')
    .pipe(z.record(z.string(), z.string()))
    .meta({ type: "object", additionalProperties: { type: "string" } }).optional(),
});

const headroom = z.discriminatedUnion("mode", [
  z.object({ mode: z.literal("percent"), value: z.number().min(0).max(100) }),
  z.object({ mode: z.literal("multiplier"), value: z.number().min(1).max(REQUEST_LIMITS.amountMax) }),
]);

const limitGroup = z.object({
  id: label,
  label,
  unit,
  quota: amount,
  matches: z.array(matchRule).min(1),
  headroom: headroom.nullish(),
});

const plan = z.object({
  id: label,
  name: label,
  rank: z.number(),
  period: z.object({
    type: z.enum(["daily", "weekly", "monthly", "lifetime"]),
    anchor: z.enum(["subscription_start", "calendar"]),
  }),
  onPlanChange: z.enum(["carry", "reset", "block"]).optional(),
  archived: z.boolean().optional(),
  headroom: headroom.nullish(),
  limits: z.array(limitGroup),
});

const model = z.object({
  id: label,
  modality: z.enum(["text", "image", "audio", "video"]),
  amountMode: z.enum(["per_token", "per_call", "per_unit"]),
  inputCentsPerMillionTokens: amount.optional(),
  outputCentsPerMillionTokens: amount.optional(),
  centsPerCall: amount.optional(),
  centsPerSecond: amount.optional(),
});

const packItem = z.object({
  id: label,
  label,
  unit,
  amount: amount.positive(),
  matches: z.array(matchRule).min(1),
});

const pack = z.object({
  id: label,
  name: label,
  kind: z.enum(["per_type", "generic"]),
  priority: z.number().optional(),
  defaultExpiryDays: z.number().positive().nullish(),
  archived: z.boolean().optional(),
  unit: unit.optional(),
  matches: z.array(matchRule).min(1).optional(),
  items: z.array(packItem),
});

const composeType = z.object({
  name: z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be in kebab-case").max(100),
  model: label,
  prompt: z.string().min(1).max(32_768),
  dataSources: z.array(
    z.enum(["user_usage", "user_events", "user_attributes", "subscription", "credits"]),
  ).optional(),
  outputSchema: z.record(z.string(), z.unknown()).refine(
    isShallow,
    `must not be nested deeper than ${SCHEMA_DEPTH_MAX} levels`,
  ),
  maxOutputTokens: z.int().positive().optional(),
  temperature: z.number().min(0).max(2).optional(),
});

const settings = z.object({
  promptLogging: z.boolean().optional(),
  promptLogRetentionDays: z.number().positive().max(36_500).optional(),
  reservationTtlSeconds: z.number()
    .min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).optional(),
  corsOrigins: z.array(
    z.string().refine(isOrigin, "must be an origin as browsers send it, such as https://shop.example.com"),
  ).optional(),
  rateLimit: z.object({ perSecond: z.number().positive(), burst: z.number().min(1) }).optional(),
});

/** A whole catalog document. Unknown members are dropped, as everywhere on the wire. */
export const catalogSchema = z.object({
  settings: settings.optional(),
  models: z.array(model).optional(),
  plans: z.array(plan).optional(),
  packs: z.array(pack).optional(),
  composeTypes: z.array(composeType).optional(),
});

/** A catalog document whose parts have the right shape. */
export type CatalogInput = z.infer<typeof catalogSchema>;

function isLabel(text: string): boolean {
  return /^[^\p{Cc}]+$/u.test(text) && [...text].length <= REQUEST_LIMITS.idLengthMax;
}

/** Scheme, host and port in the form in which browsers send them: it is compared as text. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  if (protocol === "http:" || protocol === "https:") return origin === text;
  // Of apps in a shell of their own, such as capacitor://localhost.
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+$/.test(text);
}

/** A record schema drops this member, which would make a rule match more than it says. */
function hasNoPrototype(value: unknown): boolean {
  return typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__");
}

/** Looks level by level, without recursion. */
function isShallow(root: unknown): boolean {
  let level = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > SCHEMA_DEPTH_MAX) return false;
    level = level.flatMap((value) => typeof value === "object" && value !== null ? Object.values(value) : []);
  }
  return true;
}

function isPattern(text: string): boolean {
  return isLabel(text) && !text.slice(0, -1).includes("*");
}
