// The service itself, for its operators: health, processes, sweeps, the audit log and daily usage.

import { z } from "zod";
import { storeName } from "./admin.ts";
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
  input: z.object({
    long: z.enum(["with", "without", "only"]).nullish().describe(
      "Whether the checks are made that read every catalog and the accounts of a sample of users, which may take " +
        "seconds, or no others. Default: with",
    ),
  }),
  tag: "Administration",
  summary: "Run the health checks",
  description: "Each check has a verdict, what was found, and what to do if the verdict is not ok.",
  answer: z.strictObject({
    verdict: verdict.describe("The worst verdict of all checks"),
    checks: z.array(z.strictObject({
      name: z.string(),
      verdict,
      found: z.string(),
      advice: z.string().nullable().describe("What to do; null if nothing"),
    })),
  }),
  errors: [],
});

const cluster = z.strictObject({
  member: z.int().describe("The number of the member that answers"),
  registryVersion: z.int().describe("The version of workspaces, apps, keys and catalogs"),
  members: z.array(z.strictObject({
    term: z.int().describe("The number of the member; never reused"),
    address: z.string().nullable().describe("The address for other members"),
    share: z.int().describe("0 for a front, and for a member that is about to stop"),
    cells: z.array(z.int()).describe("The cells it owns, of 64; each has a part of the workspaces"),
    registryVersion: z.int(),
    livedSeconds: seconds,
    silentSeconds: seconds.describe("Since its last heartbeat; from 3 on it answers no calls"),
    hasEnded: z.boolean(),
    isReached: z.boolean().describe("Whether the answering member is connected to it"),
  })),
  cellsWithoutOwner: z.array(z.int()),
  troubles: z.array(z.strictObject({ found: z.string(), advice: z.string() }))
    .describe("Problems; empty if there are none"),
});

/** `GET /admin/v1/cluster` */
export const showCluster = defineCall({
  id: "showCluster",
  method: "GET",
  path: "/admin/v1/cluster",
  access: "admin",
  input: z.object({
    store: storeName.optional().describe(
      "With HOLDFAST_DATABASES: the database. Default: the first that answers",
    ),
  }),
  tag: "Administration",
  summary: "List the processes of this database",
  description: "Each process is a member and owns the workspaces of its cells. Any member can answer.",
  answer: cluster,
  errors: [],
});

const cellList = z.array(z.int());

const split = z.strictObject({
  to: z.string().describe("The name of the new database"),
  state: z.enum(["planned", "released", "open"]).describe(
    "planned until every cell is handed over, released until the new database has begun, then open",
  ),
  cells: cellList.describe("The cells that were handed over"),
  left: cellList.describe("The cells that are still to be handed over"),
});

/** `GET /admin/v1/stores` */
export const listStores = defineCall({
  id: "listStores",
  method: "GET",
  path: "/admin/v1/stores",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "List the databases of the service",
  description:
    "Each workspace is whole on one of them. A database that the answering process cannot serve is in the list, " +
    "without its numbers.",
  answer: z.array(z.strictObject({
    store: z.string().nullable().describe("Its name in HOLDFAST_DATABASES; null without the setting"),
    state: z.string().describe("What the answering process does with it: serving, or why not"),
    workspaces: z.int().min(0).nullable(),
    cluster: cluster.nullable().describe("Its processes"),
    waitsFor: z.string().nullable().describe(
      "What it waits for, where it is a standby that a split can make a database; null for any other",
    ),
    splits: z.array(split).describe("The databases that were split off from it"),
  })),
  errors: [],
});

/** `POST /admin/v1/stores/{store}/split` */
export const splitStore = defineCall({
  id: "splitStore",
  method: "POST",
  path: "/admin/v1/stores/:store/split",
  access: "admin",
  input: z.object({
    store: storeName,
    to: storeName.describe("The name of the new database: a standby of the other one until now"),
    cells: z.array(z.int().min(0).max(63)).min(1).max(63)
      .refine((cells) => new Set(cells).size === cells.length, "must name each cell once")
      .describe("The cells whose workspaces move; each workspace is in one of 64"),
  }),
  tag: "Administration",
  summary: "Split a database",
  description:
    "Hands cells over to a standby, which becomes a database of its own. It goes on by itself after the answer; see " +
    "GET /admin/v1/stores. Repeating the call changes nothing.",
  answer: split,
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
  summary: "Settle everything that is due",
  description: "The service does this regularly by itself. The answer counts the rows that were settled or " +
    "removed.",
  answer: z.strictObject({
    expiredReservations: rowCount,
    endedSubscriptions: rowCount,
    idempotencyRecords: rowCount,
    historyRows: rowCount,
    promptLogs: rowCount,
    refusals: rowCount,
    messages: rowCount,
    stripeFacts: rowCount,
    runs: rowCount,
    rates: rowCount,
    stripeRetries: rowCount,
    failedSignIns: rowCount,
    failedRequests: rowCount,
    movedRows: rowCount.describe("Of workspaces that a split moved to another database"),
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
  summary: "Move the history of merged users",
  description: "The service does this regularly by itself. History of an alias is moved to the canonical id.",
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
  summary: "List the audit log",
  description:
    "Writes and sign-ins of people through the console and the admin API, failed sign-ins too, newest " +
    "first. cursor is the nextCursor of the previous page. userId selects the entries of exactly this " +
    "id; aliases have their own entries.",
  answer: z.strictObject({
    entries: z.array(
      z.strictObject({
        auditId: z.string(),
        at: time,
        who: z.string().describe(
          '"admin", "support" or a name of HOLDFAST_CONSOLE_TOKENS; "unknown" for a failed sign-in',
        ),
        via: z.enum(["console", "api"]),
        what: z.string().describe(
          'The operationId of the call; or "signIn", "signOut", or "signInFailed" for the wrong tokens of an ' +
            "address within a minute, with their count in after; these entries are kept for 90 days",
        ),
        appId: z.string().nullable(),
        mode: mode.nullable(),
        userId: z.string().nullable().describe("A keyed hash after the user is erased"),
        before: shortValues.describe("Short values before the write"),
        after: shortValues.describe(
          'Short values after the write; {"outcome":"unknown"} if the outcome is unknown',
        ),
      }).meta({ id: "AuditEntry" }),
    ),
    nextCursor: z.string().nullable(),
  }),
  errors: [],
});

const DAY_MS = 86_400_000;

/** What daily usage can be divided into. */
export const DAILY_PARTS = ["event", "user", "model", "plan", "hour"] as const;

/** A day in UTC, as days since 1970-01-01. */
const day = z.iso.date("must be a date, such as 2026-11-22").transform((text) => Date.parse(text) / DAY_MS)
  .register(SHOWN_AS, { type: "string", format: "date" });

/** The text of a day. */
export function dayText(number: number): string {
  return new Date(number * DAY_MS).toISOString().slice(0, 10);
}

const dailyUseInput = z.object({
  mode,
  from: day.describe("First day"),
  to: day.describe("Last day"),
  by: z.enum(DAILY_PARTS),
  status: z.enum(["used", "blocked"]).default("used")
    .describe("blocked: the parts are those with blocked events, and those with most of them lead"),
  order: z.enum(["events", "cost"]).default("events").describe(
    "By which number parts lead; not with blocked",
  ),
  userId: endUserId.optional().describe("Usage of this user only"),
  withMembers: z.enum(["true", "false"]).optional().describe(
    `true: with the usage of the users who are below userId now, at most ${DAILY_USE_LIMITS.membersMax}`,
  ),
}).refine(({ from, to }) => from <= to, { path: ["to"], message: "must not be before from" })
  .refine(({ from, to }) => to - from < DAILY_USE_LIMITS.daysMax, {
    path: ["from"],
    message: `must be at most ${DAILY_USE_LIMITS.daysMax - 1} days before to`,
  });

const use = {
  events: z.int().min(0).describe("Without blocked events and released holds"),
  blocked: z.int().min(0),
  costCents: z.number(),
  costCredits: z.number().optional().describe("Present if the catalog has rates"),
};

const unpriced = z.int().min(0).optional()
  .describe(
    "The number of events of models without a price: their cost is unknown. Absent by event type and by user",
  );

/** `GET /admin/v1/apps/{appId}/usage/daily` */
export const listDailyUse = defineCall({
  id: "listDailyUse",
  method: "GET",
  path: "/admin/v1/apps/:appId/usage/daily",
  access: "admin",
  about: "appId",
  input: dailyUseInput.safeExtend({ appId: z.string() }),
  tag: "Administration",
  summary: "Get daily usage",
  description:
    "By event type, user, model, plan or hour. Days are of the app's clock, in UTC. The numbers of a day are of all " +
    "users, or of userId; parts leave out users that the feed hides. The plan of an event is the primary one of " +
    "its user, or of the nearest account above that has one, at the event; its model is that of the price row, " +
    "or the one that the call names.",
  answer: z.strictObject({
    by: z.enum(DAILY_PARTS),
    from: z.iso.date(),
    to: z.iso.date(),
    countedUntil: time.describe("Later events are not counted yet"),
    members: z.strictObject({
      counted: z.int().min(0),
      hasMore: z.boolean().describe("Whether there are further users below, who are not added"),
    }).optional().describe("Present with withMembers: the users below who are added"),
    days: z.array(z.strictObject({
      day: z.iso.date(),
      ...use,
      users: z.int().min(0).nullable().describe(
        "Users with events or blocked events, an alias until its merge as one; null with userId, and for days " +
          "that older versions counted",
      ),
      parts: z.array(z.strictObject({
        event: z.string().nullable(),
        userId: z.string().nullable(),
        model: z.string().nullable().describe("By model, null for events without a model"),
        planId: z.string().nullable().describe("By plan, null for events without a plan"),
        hour: z.int().min(0).max(23).nullable().describe("By hour, in UTC: all 24 hours can be parts"),
        isUnknown: z.literal(true).optional()
          .describe("Present on the part of events that were stored without their model and plan"),
        ...use,
        unpriced,
        quantity: z.number(),
      })).describe("The ten parts that lead on most days; without those that have no usage on this day"),
    })).describe("Every day of the range, oldest first"),
  }),
  errors: ["not_found"],
});
