// Bodies and answers of the admin API as schemas. Section 3 of the decisions, "Admin API".

import { z } from "zod";
import { endUserId, nameOf, SHOWN_AS } from "./fields.ts";
import { time } from "./records.ts";
import { catalogSchema, envelopeMembers } from "../../../src/tenant/catalog/schema.ts";
import { DAILY_USE_LIMITS, REQUEST_LIMITS } from "../../../src/process/limits.ts";

const name = nameOf(REQUEST_LIMITS.idLengthMax);
const cap = z.number().min(0).max(REQUEST_LIMITS.amountMax).nullable().optional();
const caps = { operationCap: cap, aiBudgetCents: cap, testOperationCap: cap, testCreditBalanceCap: cap };
const keyClass = z.enum(["secret", "public"]);
const mode = z.enum(["live", "test"]);

export const workspaceInput = z.object({ name, ...caps });
export const workspacePatch = z.object({
  name: name.nullish().transform((text) => text ?? undefined),
  ...caps,
});
export const appInput = z.object({ name, workspaceId: z.string().nullish() });
export const keyInput = z.object({ class: keyClass, mode });

const KEEP_OLD_SECONDS_MAX = 30 * 24 * 3_600;

/** How long tokens of an old identity secret hold where the call does not say. */
export const KEEP_OLD_SECONDS_DEFAULT = 24 * 3_600;

export const identityInput = z.object({
  keepOldSeconds: z.number().min(0).max(KEEP_OLD_SECONDS_MAX).nullish()
    .describe(`How long the old secret goes on being valid. Default ${KEEP_OLD_SECONDS_DEFAULT}`),
});

export const identityAnswer = z.strictObject({
  identitySecret: z.string().describe("Signs end-user tokens; shown once"),
  oldValidUntil: time.describe("Until when tokens of the secret before it hold"),
});

const expectedVersion = z.int().min(0).nullish()
  .describe("The version that the document was made from: another one in force refuses the call");

/** A catalog as it is put, as the reference shows it; `src/tenant/catalog` checks the document as a whole. */
export const catalogBody = z.strictObject({ ...catalogSchema.shape, ...envelopeMembers, expectedVersion })
  .meta({ id: "Catalog" });

/** What goes with a document, apart from the document itself. */
export const catalogInput = z.object({
  dryRun: z.enum(["true", "false"]).optional(),
  catalog: z.custom<Record<string, unknown>>(() => true).transform((document, context) => {
    const { success, data } = expectedVersion.safeParse(document.expectedVersion);
    if (!success) {
      const message = "must be a whole number, 0 or more";
      context.addIssue({ code: "custom", path: ["expectedVersion"], message });
    }
    return { document, expectedVersion: data ?? null };
  }),
});

const setCap = z.number().nullable().describe("null: no limit");
const workspaceMembers = {
  workspaceId: z.string(),
  name: z.string(),
  operationCap: setCap,
  aiBudgetCents: setCap,
  testOperationCap: setCap,
  testCreditBalanceCap: setCap,
};

export const workspaceAnswer = z.strictObject(workspaceMembers);

export const workspacesAnswer = z.array(z.strictObject({
  ...workspaceMembers,
  operationsUsed: z.number().describe("In the running UTC month"),
  testOperationsUsed: z.number(),
  aiSpentCents: z.number(),
}));

const shownKey = z.strictObject({
  keyId: z.string(),
  key: z.string().describe("Shown once"),
  class: keyClass,
  mode,
}).meta({ id: "NewKey" });

export const newAppAnswer = z.strictObject({
  appId: z.string(),
  workspaceId: z.string(),
  identitySecret: z.string().describe("Signs end-user tokens; shown once"),
  keys: z.array(shownKey).describe("One of each class and mode"),
});

export const appAnswer = z.strictObject({
  appId: z.string(),
  workspaceId: z.string(),
  name: z.string(),
  createdAt: time,
  catalogVersion: z.int(),
}).meta({ id: "App" });

export const newKeyAnswer = shownKey;

export const keyAnswer = z.strictObject({
  keyId: z.string(),
  prefix: z.string(),
  class: keyClass,
  mode,
  createdAt: time,
  revokedAt: time.nullable(),
}).meta({ id: "Key" });

export const catalogAnswer = z.strictObject({
  version: z.int().describe("0 before the first catalog"),
  ...catalogSchema.shape,
});

export const appliedAnswer = z.strictObject({
  version: z.int(),
  changes: z.array(z.strictObject({
    path: z.string(),
    id: z.string().describe('Of the innermost thing that has one; "settings" for settings'),
    change: z.enum(["added", "changed", "removed"]),
  })),
});

const rowCount = z.int().min(0);

export const sweepAnswer = z.strictObject({
  expiredReservations: rowCount,
  endedSubscriptions: rowCount,
  idempotencyRecords: rowCount,
  historyRows: rowCount,
  promptLogs: rowCount,
  refusals: rowCount,
  messages: rowCount,
  stripeFacts: rowCount,
  erasures: rowCount,
});

export const moveHistoryAnswer = z.strictObject({ historyRows: rowCount });

const shortValues = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullable();

export const auditAnswer = z.strictObject({
  entries: z.array(
    z.strictObject({
      auditId: z.string(),
      at: time,
      who: z.string().describe(
        '"admin", "support", a name of HOLDFAST_CONSOLE_TOKENS; "unknown" for a failed sign-in',
      ),
      via: z.enum(["console", "api"]),
      what: z.string().describe(
        'The call that was made, by its name here; "signIn", "signInFailed", "signOut"',
      ),
      appId: z.string().nullable(),
      mode: mode.nullable(),
      userId: z.string().nullable().describe("A keyed hash once the user is erased"),
      before: shortValues.describe("Short values of what was changed, as they were"),
      after: shortValues.describe('As they are since; {"outcome":"unknown"} where nobody saw how it ended'),
    }).meta({ id: "AuditEntry" }),
  ),
  nextCursor: z.string().nullable(),
});

const verdict = z.enum(["ok", "warn", "fail"]);

export const healthAnswer = z.strictObject({
  verdict: verdict.describe("The worst of the checks"),
  checks: z.array(z.strictObject({
    name: z.string(),
    verdict,
    found: z.string(),
    advice: z.string().nullable().describe("What to do; null where nothing is"),
  })),
});

const DAY_MS = 86_400_000;

/** A day in UTC, as days since 1970-01-01. */
const day = z.iso.date("must be a date, such as 2026-11-22").transform((text) => Date.parse(text) / DAY_MS)
  .register(SHOWN_AS, { type: "string", format: "date" });

/** The text of a day. */
export function dayText(number: number): string {
  return new Date(number * DAY_MS).toISOString().slice(0, 10);
}

export const dailyUseInput = z.object({
  mode,
  from: day.describe("The first day"),
  to: day.describe("The last day"),
  by: z.enum(["event", "user"]),
  userId: endUserId.optional().describe("One user's use alone"),
}).refine(({ from, to }) => from <= to, { path: ["to"], message: "must not be before from" })
  .refine(({ from, to }) => to - from < DAILY_USE_LIMITS.daysMax, {
    path: ["from"],
    message: `must be at most ${DAILY_USE_LIMITS.daysMax - 1} days before to`,
  });

const use = {
  events: z.int().min(0).describe("Without blocked ones and released holds"),
  blocked: z.int().min(0),
  costCents: z.number(),
};

export const dailyUseAnswer = z.strictObject({
  by: z.enum(["event", "user"]),
  from: z.iso.date(),
  to: z.iso.date(),
  countedUntil: time.describe("Events from this moment on are not in the sums yet"),
  days: z.array(z.strictObject({
    day: z.iso.date(),
    ...use,
    parts: z.array(z.strictObject({
      event: z.string().nullable(),
      userId: z.string().nullable(),
      ...use,
      quantity: z.number(),
    })).describe(
      "Of the ten kinds of events, or users, that lead most days; those with no use of the day are left out",
    ),
  })).describe("Each day of the range, oldest first"),
});

const seconds = z.number().min(0);

export const clusterAnswer = z.strictObject({
  member: z.int().describe("The one that answers"),
  registryVersion: z.int().describe("Of workspaces, apps, keys and catalogs"),
  members: z.array(z.strictObject({
    term: z.int().describe("Its number, which no other member ever has"),
    address: z.string().nullable().describe("Where the others reach it"),
    share: z.int().describe("0 for a front, and for one that is about to stop"),
    cells: z.array(z.int()).describe("Of 64; each has some of the workspaces"),
    registryVersion: z.int(),
    livedSeconds: seconds,
    silentSeconds: seconds.describe("Since its last beat; from 3 on it answers nothing"),
    hasEnded: z.boolean(),
    isReached: z.boolean().describe("Whether the member that answers has a channel to it"),
  })),
  cellsWithoutOwner: z.array(z.int()),
  troubles: z.array(z.strictObject({ found: z.string(), advice: z.string() }))
    .describe("What is wrong, in plain words; empty where all is well"),
});
