// Workspaces, apps and API keys, with the admin token.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, mode, nameOf } from "./fields.ts";
import { time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const workspacePath = { workspaceId: z.string() };
const keyPath = { ...appPath, keyId: z.string() };

const name = nameOf(REQUEST_LIMITS.idLengthMax);
const cap = z.number().min(0).max(REQUEST_LIMITS.amountMax).nullable().optional();
const caps = {
  operationCap: cap.describe(
    "Operations a month in live mode: events that counted, and rows that merges and promotions write",
  ),
  aiBudgetCents: cap.describe("Cents a month for AI calls"),
  testOperationCap: cap.describe("The same in test mode"),
  testCreditBalanceCap: cap.describe("Credit balances that an app may issue in test mode"),
};
const keyClass = z.enum(["secret", "public", "reader"]);

/** The name of one of several databases. */
export const storeName = z.string().max(31);

const workspaceInput = z.object({
  name,
  ...caps,
  store: storeName.nullish().describe(
    "With HOLDFAST_DATABASES: the database that gets the workspace, for ever. Default: the one with the fewest",
  ),
});
const workspacePatch = z.object({
  name: name.nullish().transform((text) => text ?? undefined),
  ...caps,
});
const appInput = z.object({ name, workspaceId: z.string().nullish() });
const keyInput = z.object({
  class: keyClass.describe(
    "secret for your backend, public for pages, reader for agents and dashboards that only read",
  ),
  mode: mode.describe("Whether it reaches live or test data"),
  name: name.nullish().describe("What it is for, such as the program that uses it"),
});

const KEEP_OLD_SECONDS_MAX = 30 * 24 * 3_600;

/** How long tokens of an old identity secret stay valid by default. */
export const KEEP_OLD_SECONDS_DEFAULT = 24 * 3_600;

const rollInput = z.object({
  keepOldSeconds: z.number().min(0).max(KEEP_OLD_SECONDS_MAX).nullish()
    .describe(`How many seconds the old key stays valid. Default ${KEEP_OLD_SECONDS_DEFAULT}`),
});

const identityInput = z.object({
  keepOldSeconds: z.number().min(0).max(KEEP_OLD_SECONDS_MAX).nullish()
    .describe(`How many seconds the old secret stays valid. Default ${KEEP_OLD_SECONDS_DEFAULT}`),
});

const setCap = z.number().nullable().describe("null: no limit");
const workspaceMembers = {
  workspaceId: z.string(),
  name: z.string(),
  operationCap: setCap,
  aiBudgetCents: setCap,
  testOperationCap: setCap,
  testCreditBalanceCap: setCap,
  store: z.string().optional().describe("The database that has it. Present with HOLDFAST_DATABASES"),
};

const shownKey = z.strictObject({
  keyId: z.string(),
  key: z.string().describe("Shown only once"),
  class: keyClass,
  mode,
}).meta({ id: "NewKey" });

const rolledKey = z.strictObject({
  ...shownKey.shape,
  oldValidUntil: time.describe("When the old key becomes invalid"),
}).meta({ id: "RolledKey" });

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
  name: z.string().nullable(),
  createdAt: time,
  createdBy: z.string().nullable().describe(
    'An operator of the console, or "admin" for the admin token; null if it is not known',
  ),
  lastUsedAt: time.nullable().describe("To the minute; null if it was never used"),
  validUntil: time.nullable().describe("When a key that was rolled becomes, or became, invalid; else null"),
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
  summary: "List workspaces",
  description: "Each with its usage of this month (UTC).",
  answer: z.array(z.strictObject({
    ...workspaceMembers,
    operationsUsed: z.number().describe("In this month (UTC)"),
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
  summary: "Create a workspace",
  description: "Caps apply per month (UTC); null means no limit.",
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
  summary: "Update a workspace",
  description: "Omitted members keep their value; a cap of null means no limit.",
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
  summary: "List apps",
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
  summary: "Create an app with its four keys",
  description:
    "Without workspaceId the app belongs to the first workspace. The keys and identitySecret are shown " +
    "only once.",
  answer: z.strictObject({
    appId: z.string(),
    workspaceId: z.string(),
    identitySecret: z.string().describe("Signs end-user tokens; shown only once"),
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
  summary: "Get an app",
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
  summary: "Rotate the identity secret of an app",
  description:
    "The new secret signs end-user tokens at once and is shown only once. Tokens that were signed with " +
    "the old secret stay valid until oldValidUntil, or until they expire.",
  answer: z.strictObject({
    identitySecret: z.string().describe("Signs end-user tokens; shown only once"),
    oldValidUntil: time.describe("When tokens of the old secret become invalid"),
  }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/keys` */
export const listKeys = defineCall({
  id: "listKeys",
  method: "GET",
  path: "/admin/v1/apps/:appId/keys",
  access: "admin",
  input: z.object(appPath),
  tag: "Administration",
  summary: "List the API keys of an app",
  description: "With their prefixes. A key itself is shown only when it is created.",
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
  summary: "Create an API key",
  description: "The key is shown only once.",
  answer: shownKey,
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/keys/{keyId}/roll` */
export const rollKey = defineCall({
  id: "rollKey",
  method: "POST",
  path: "/admin/v1/apps/:appId/keys/:keyId/roll",
  access: "admin",
  about: "appId",
  input: rollInput.extend(keyPath),
  tag: "Administration",
  summary: "Roll an API key",
  description:
    "Creates a key of the same class, mode and name, which is shown only once. The old key stays valid for " +
    "keepOldSeconds, so that programs can change over without an error. A key that is invalid already " +
    "cannot be rolled.",
  answer: rolledKey,
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
  summary: "Revoke an API key",
  description: "Takes effect at once.",
  answer: keyAnswer,
  errors: ["not_found"],
});
