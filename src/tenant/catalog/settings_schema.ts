// The settings of a catalog, as zod schemas.

import { z } from "zod";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { isOrigin, isPattern } from "./forms.ts";
import { amount, label } from "./price_schema.ts";

const rateLimit = z.strictObject({
  perSecond: z.number().positive().meta({ description: "Calls a second in the long run.", examples: [50] }),
  burst: z.number().min(1).meta({ description: "Calls that may come at once.", examples: [100] }),
}).meta({
  id: "CatalogRateLimit",
  title: "Rate limit",
  description: "How fast the calls of one key may come.",
});

const modelPattern = label.refine(
  isPattern,
  "must be the name of a model, or a prefix with one * at its end",
);

const upstreamRule = z.strictObject({
  models: z.array(modelPattern).min(1).max(1_000).meta({
    description: "Patterns of the models' names.",
    examples: [["mistral-*"]],
  }),
  upstream: label.meta({
    description:
      "The name of a server in the setting `HOLDFAST_UPSTREAMS`. Rules with a server of the other " +
      "dialect are passed over.",
    examples: ["eu"],
  }),
}).meta({
  id: "CatalogUpstreamRule",
  title: "Upstream rule",
  description: "The model server of some models.",
});

/** `gateway` of a document. */
export const gateway = z.strictObject({
  models: z.array(modelPattern).max(1_000).optional().meta({
    description:
      "The models that may be called, as patterns of names or of ids of price rows. None may with an empty " +
      "list. Default: every model of the model server.",
    examples: [["gpt-4o-mini", "claude-*"]],
  }),
  allowTestMode: z.boolean().optional().meta({
    description: "Whether test keys may call models. Their calls cost real money.",
    default: false,
    examples: [true],
  }),
  allowStoredObjects: z.boolean().optional().meta({
    description:
      "Whether calls may store answers at the model server, and name stored responses, conversations, " +
      "prompts, files, containers and vector stores. Every app of this service shares the account, so one " +
      "app could read objects of another.",
    default: false,
    examples: [true],
  }),
  allowServerTools: z.boolean().optional().meta({
    description:
      "Whether calls may have tools that Anthropic runs, such as its web search, and other models as " +
      "`fallbacks`: what they cost is not in the model's price row. Refused too where the catalog has no `gateway`.",
    default: false,
    examples: [true],
  }),
  budgetCents: amount.optional().meta({
    description:
      "Cents that calls of both modes may cost in a UTC month, by the prices of this catalog. A call " +
      "is refused once they are spent, so calls in flight may pass it. It needs a price row of every model " +
      "that is called. Default: no limit.",
    examples: [50_000],
  }),
  upstreams: z.array(upstreamRule).max(100).optional().meta({
    description: "Models of other servers. The first rule that covers a model counts; the others go to the " +
      "server of `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`.",
    default: [],
    examples: [[{ models: ["mistral-*"], upstream: "eu" }]],
  }),
}).meta({
  id: "CatalogGateway",
  title: "Gateway",
  description:
    "What keys of the app may do at `/openai/v1` and `/anthropic/v1`. Without this member their keys " +
    "may call every model, test keys too.",
});

/** `settings` of a document. */
export const settings = z.strictObject({
  promptLogging: z.boolean().optional().meta({
    description: "Whether prompts and responses are kept.",
    default: false,
    examples: [true],
  }),
  promptLogRetentionDays: z.number().positive().max(36_500).optional().meta({
    description: "Days for which they are kept, from the time of their event.",
    default: 30,
    examples: [14],
  }),
  reservationTtlSeconds: z.number()
    .min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).optional().meta({
      description: "Seconds after which a hold lapses, where the call names none.",
      default: 600,
      examples: [120],
    }),
  corsOrigins: z.array(
    z.string().refine(isOrigin, "must be an origin as browsers send it, such as https://shop.example.com"),
  ).optional().meta({
    description: "Origins of pages that may call with a public key, each compared exactly.",
    default: [],
    examples: [["https://shop.example.com"]],
  }),
  rateLimit: rateLimit.optional().meta({
    description: "How fast the calls of one key may come. Default: no limit for secret keys; 500 a second " +
      "and 1,000 at once for public keys.",
    examples: [{ perSecond: 50, burst: 100 }],
  }),
  unpricedModels: z.enum(["warn", "refuse"]).optional().meta({
    description: "How to treat an event without a known cost under a cents group: `warn` counts " +
      "0 cents and the answer has a warning, `refuse` refuses reserve and track.",
    default: "warn",
    examples: ["refuse"],
  }),
}).meta({ id: "CatalogSettings", title: "Settings", description: "What holds for the whole app." });
