// Workspaces, apps, API keys and catalogs, with the admin token.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, mode, nameOf } from "./fields.ts";
import { time } from "./records.ts";
import { catalogSchema, envelopeMembers } from "../../src/tenant/catalog/schema.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const workspacePath = { workspaceId: z.string() };
const keyPath = { ...appPath, keyId: z.string() };

const name = nameOf(REQUEST_LIMITS.idLengthMax);
const cap = z.number().min(0).max(REQUEST_LIMITS.amountMax).nullable().optional();
const caps = { operationCap: cap, aiBudgetCents: cap, testOperationCap: cap, testCreditBalanceCap: cap };
const keyClass = z.enum(["secret", "public"]);

const workspaceInput = z.object({ name, ...caps });
const workspacePatch = z.object({
  name: name.nullish().transform((text) => text ?? undefined),
  ...caps,
});
const appInput = z.object({ name, workspaceId: z.string().nullish() });
const keyInput = z.object({ class: keyClass, mode });

const KEEP_OLD_SECONDS_MAX = 30 * 24 * 3_600;

/** How long tokens of an old identity secret hold where the call does not say. */
export const KEEP_OLD_SECONDS_DEFAULT = 24 * 3_600;

const identityInput = z.object({
  keepOldSeconds: z.number().min(0).max(KEEP_OLD_SECONDS_MAX).nullish()
    .describe(`How long the old secret goes on being valid. Default ${KEEP_OLD_SECONDS_DEFAULT}`),
});

const expectedVersion = z.int().min(0).nullish()
  .describe("The version that the document was made from: another one in force refuses the call");

/** A catalog as it is put, as the reference shows it; `src/tenant/catalog` checks the document as a whole. */
const catalogBody = z.strictObject({ ...catalogSchema.shape, ...envelopeMembers, expectedVersion })
  .meta({ id: "Catalog" });

/** What goes with a document, apart from the document itself. */
const catalogInput = z.object({
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

const shownKey = z.strictObject({
  keyId: z.string(),
  key: z.string().describe("Shown once"),
  class: keyClass,
  mode,
}).meta({ id: "NewKey" });

const appAnswer = z.strictObject({
  appId: z.string(),
  workspaceId: z.string(),
  name: z.string(),
  createdAt: time,
  catalogVersion: z.int(),
}).meta({ id: "App" });

const keyAnswer = z.strictObject({
  keyId: z.string(),
  prefix: z.string(),
  class: keyClass,
  mode,
  createdAt: time,
  revokedAt: time.nullable(),
}).meta({ id: "Key" });

/** `GET /admin/v1/workspaces` */
export const listWorkspaces = defineCall({
  id: "listWorkspaces",
  method: "GET",
  path: "/admin/v1/workspaces",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "Every workspace with what it used this month",
  answer: z.array(z.strictObject({
    ...workspaceMembers,
    operationsUsed: z.number().describe("In the running UTC month"),
    testOperationsUsed: z.number(),
    aiSpentCents: z.number(),
  })),
  errors: [],
});

/** `POST /admin/v1/workspaces` */
export const createWorkspace = defineCall({
  id: "createWorkspace",
  method: "POST",
  path: "/admin/v1/workspaces",
  access: "admin",
  input: workspaceInput,
  tag: "Administration",
  summary: "Make a workspace",
  description: "Caps are per UTC month; null means no limit.",
  answer: z.strictObject(workspaceMembers),
  errors: [],
});

/** `PATCH /admin/v1/workspaces/{workspaceId}` */
export const changeWorkspace = defineCall({
  id: "changeWorkspace",
  method: "PATCH",
  path: "/admin/v1/workspaces/:workspaceId",
  access: "admin",
  about: "workspaceId",
  input: workspacePatch.extend(workspacePath),
  tag: "Administration",
  summary: "Change a workspace",
  description: "A member that is left out keeps its value; a cap of null means no limit.",
  answer: z.strictObject(workspaceMembers),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps` */
export const listApps = defineCall({
  id: "listApps",
  method: "GET",
  path: "/admin/v1/apps",
  access: "admin",
  input: null,
  tag: "Administration",
  summary: "Every app",
  answer: z.array(appAnswer),
  errors: [],
});

/** `POST /admin/v1/apps` */
export const createApp = defineCall({
  id: "createApp",
  method: "POST",
  path: "/admin/v1/apps",
  access: "admin",
  about: "workspaceId",
  input: appInput,
  tag: "Administration",
  summary: "Make an app with its four keys",
  description:
    "Without workspaceId the app belongs to the first workspace. Keys and identitySecret show once.",
  answer: z.strictObject({
    appId: z.string(),
    workspaceId: z.string(),
    identitySecret: z.string().describe("Signs end-user tokens; shown once"),
    keys: z.array(shownKey).describe("One of each class and mode"),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}` */
export const getApp = defineCall({
  id: "getApp",
  method: "GET",
  path: "/admin/v1/apps/:appId",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Administration",
  summary: "An app",
  answer: appAnswer,
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/identity-secret` */
export const rotateIdentitySecret = defineCall({
  id: "rotateIdentitySecret",
  method: "POST",
  path: "/admin/v1/apps/:appId/identity-secret",
  access: "admin",
  about: "appId",
  input: identityInput.extend(appPath),
  tag: "Administration",
  summary: "Give an app a new identity secret",
  description:
    "The new secret signs end-user tokens at once and shows once. Tokens that the old one signed hold " +
    "until oldValidUntil, or until they expire.",
  answer: z.strictObject({
    identitySecret: z.string().describe("Signs end-user tokens; shown once"),
    oldValidUntil: time.describe("Until when tokens of the secret before it hold"),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/keys` */
export const listKeys = defineCall({
  id: "listKeys",
  method: "GET",
  path: "/admin/v1/apps/:appId/keys",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Administration",
  summary: "The keys of an app, by their prefixes",
  answer: z.array(keyAnswer),
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/keys` */
export const createKey = defineCall({
  id: "createKey",
  method: "POST",
  path: "/admin/v1/apps/:appId/keys",
  access: "admin",
  about: "appId",
  input: keyInput.extend(appPath),
  tag: "Administration",
  summary: "Make a key",
  answer: shownKey,
  errors: ["not_found"],
});

/** `DELETE /admin/v1/apps/{appId}/keys/{keyId}` */
export const revokeKey = defineCall({
  id: "revokeKey",
  method: "DELETE",
  path: "/admin/v1/apps/:appId/keys/:keyId",
  access: "admin",
  about: "appId",
  input: z.object(keyPath),
  tag: "Administration",
  summary: "Revoke a key, at once",
  answer: keyAnswer,
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/catalog` */
export const getCatalog = defineCall({
  id: "getCatalog",
  method: "GET",
  path: "/admin/v1/apps/:appId/catalog",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Administration",
  summary: "The catalog in force",
  answer: z.strictObject({
    version: z.int().describe("0 before the first catalog"),
    ...catalogSchema.shape,
  }),
  errors: ["not_found"],
});

/** `PUT /admin/v1/apps/{appId}/catalog` */
export const applyCatalog = defineCall({
  id: "applyCatalog",
  method: "PUT",
  path: "/admin/v1/apps/:appId/catalog",
  access: "admin",
  about: "appId",
  input: catalogInput.extend(appPath),
  inQuery: ["dryRun"],
  wholeBody: { member: "catalog", schema: catalogBody },
  tag: "Administration",
  summary: "Put a whole catalog in force",
  description: "Refused as a whole when any part is wrong; details then name each fault by its path. " +
    "A dry run says what would change. With expectedVersion, a catalog that somebody else has changed " +
    "meanwhile is refused. version and $schema are ignored, so that what GET answered can be put back.",
  answer: z.strictObject({
    version: z.int(),
    changes: z.array(z.strictObject({
      path: z.string(),
      id: z.string().describe('Of the innermost thing that has one; "settings" for settings'),
      change: z.enum(["added", "changed", "removed"]),
    })),
  }),
  errors: ["not_found", "catalog_in_use"],
});
