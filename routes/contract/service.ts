// The service itself for its operators: health, processes, sweeps, the audit log and use by day.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, mode, SHOWN_AS, wholeNumber } from "./fields.ts";
import { time } from "./records.ts";
import { AUDIT_LIMITS, DAILY_USE_LIMITS } from "../../src/process/limits.ts";

const verdict = z.enum(["ok", "warn", "fail"]);
const seconds = z.number().min(0);
const rowCount = z.int().min(0);
const shortValues = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullable();

/** `GET /admin/v1/health` */
export const examine = defineCall({
  id: "examine",
  method: "GET",
  path: "/admin/v1/health",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "What the service finds when it examines itself",
  description: "Each check has a verdict, what was found, and what to do where it is not ok.",
  answer: z.strictObject({
    verdict: verdict.describe("The worst of the checks"),
    checks: z.array(z.strictObject({
      name: z.string(),
      verdict,
      found: z.string(),
      advice: z.string().nullable().describe("What to do; null where nothing is"),
    })),
  }),
  errors: [],
});

/** `GET /admin/v1/cluster` */
export const showCluster = defineCall({
  id: "showCluster",
  method: "GET",
  path: "/admin/v1/cluster",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "The processes that serve this database",
  description: "Each is a member and owns the workspaces of its cells. Any of them answers this.",
  answer: z.strictObject({
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
  }),
  errors: [],
});

/** `POST /admin/v1/sweep` */
export const sweep = defineCall({
  id: "sweep",
  method: "POST",
  path: "/admin/v1/sweep",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "Settle everything that is due, now",
  answer: z.strictObject({
    expiredReservations: rowCount,
    endedSubscriptions: rowCount,
    idempotencyRecords: rowCount,
    historyRows: rowCount,
    promptLogs: rowCount,
    refusals: rowCount,
    messages: rowCount,
    stripeFacts: rowCount,
    erasures: rowCount,
  }),
  errors: [],
});

/** `POST /admin/v1/move-history` */
export const moveHistory = defineCall({
  id: "moveHistory",
  method: "POST",
  path: "/admin/v1/move-history",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "File the history of merged users under one id, now",
  answer: z.strictObject({ historyRows: rowCount }),
  errors: [],
});

/** `GET /admin/v1/audit` */
export const listAudit = defineCall({
  id: "listAudit",
  method: "GET",
  path: "/admin/v1/audit",
  access: "admin",
  input: z.object({
    appId: z.string().optional(),
    userId: z.string().optional(),
    limit: wholeNumber(1, AUDIT_LIMITS.pageMax).optional(),
    cursor: z.string().optional(),
  }),
  tag: "Administration",
  summary: "What people did through console and admin API, newest first",
  description:
    "Every write and every sign-in, failed ones too. cursor is the nextCursor of the page before. " +
    "userId finds what was done to exactly this id: aliases have entries of their own.",
  answer: z.strictObject({
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
  }),
  errors: [],
});

const DAY_MS = 86_400_000;

/** A day in UTC, as days since 1970-01-01. */
const day = z.iso.date("must be a date, such as 2026-11-22").transform((text) => Date.parse(text) / DAY_MS)
  .register(SHOWN_AS, { type: "string", format: "date" });

/** The text of a day. */
export function dayText(number: number): string {
  return new Date(number * DAY_MS).toISOString().slice(0, 10);
}

const dailyUseInput = z.object({
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

/** `GET /admin/v1/apps/{appId}/usage/daily` */
export const listDailyUse = defineCall({
  id: "listDailyUse",
  method: "GET",
  path: "/admin/v1/apps/:appId/usage/daily",
  access: "admin",
  about: "appId",
  input: dailyUseInput.safeExtend({ appId: z.string() }),
  tag: "Administration",
  summary: "Use by day, by kind of event or by user",
  description:
    "Days are those of the app's clock, in UTC. Each day's own numbers are of everybody, or of userId; " +
    "parts leave out users whom the feed hides.",
  answer: z.strictObject({
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
  }),
  errors: ["not_found"],
});
