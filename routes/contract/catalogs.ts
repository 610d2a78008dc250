// Catalogs of an app, with the admin token.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, mode, wholeNumber } from "./fields.ts";
import { time } from "./records.ts";
import { CATALOG_LIMITS } from "../../src/process/catalog_limits.ts";
import { catalogSchema, envelopeMembers } from "../../src/tenant/catalog/schema.ts";

const expectedVersion = z.int().min(0).nullish()
  .describe("The version that the document is based on. The call is refused if another version is in force");

/** The body of a catalog, for the reference; `src/tenant/catalog` checks the document. */
const catalogBody = z.strictObject({ ...catalogSchema.shape, ...envelopeMembers, expectedVersion })
  .meta({ id: "Catalog" });

/** The members beside the document; the handler checks the document itself. */
const catalogInput = z.object({
  dryRun: z.enum(["true", "false"]).optional(),
  mode: mode.optional()
    .describe(
      "test: for test mode alone. Default: for live mode, and for test mode without a catalog of its own",
    ),
  catalog: z.custom<Record<string, unknown>>(() => true).transform((document, context) => {
    const { success, data } = expectedVersion.safeParse(document.expectedVersion);
    if (!success) {
      const message = "must be an integer, 0 or more";
      context.addIssue({ code: "custom", path: ["expectedVersion"], message });
    }
    return { document, expectedVersion: data ?? null };
  }),
});

const change = z.strictObject({
  path: z.string(),
  id: z.string().describe('Id of the innermost element that has one; "settings" for settings'),
  change: z.enum(["added", "changed", "removed"]),
});

const changeMembers = { version: z.int().describe("The version in force"), changes: z.array(change) };

const affected = z.int().nullable();
const { usersCountedMax, changesKeptMax, versionsKeptMax } = CATALOG_LIMITS;

const usersAffected = z.strictObject({ live: affected, test: affected }).optional().describe(
  "With dryRun=true: how many users have an active subscription to a plan that changes, by mode. " +
    `${usersCountedMax} means that many or more; null means too many users to count`,
);

const testOnly = z.boolean().optional()
  .describe("With mode=test: whether test mode has a catalog of its own");

/** `GET /admin/v1/apps/{appId}/catalog` */
export const getCatalog = defineCall({
  id: "getCatalog",
  method: "GET",
  path: "/admin/v1/apps/:appId/catalog",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, mode: mode.optional().describe("Default live") }),
  tag: "Administration",
  summary: "Get the catalog in force",
  description: "The whole document, with its version. Test mode uses the catalog of live mode unless it " +
    "has one of its own.",
  answer: z.strictObject({
    version: z.int().describe("0 before the first catalog"),
    testOnly,
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
  inQuery: ["dryRun", "mode"],
  wholeBody: { member: "catalog", schema: catalogBody },
  tag: "Administration",
  summary: "Replace the catalog",
  description: "A catalog with a fault is refused as a whole; details list each fault with its path. With " +
    "dryRun=true nothing is changed, and the answer lists what would change. With expectedVersion, the " +
    "call is refused if another version is in force. version, testOnly and $schema are ignored, so that the " +
    "answer of GET can be sent back. With mode=test the catalog is in force for test mode alone until it " +
    "is promoted or dropped; until then a call without mode changes live mode alone.",
  answer: z.strictObject({ ...changeMembers, usersAffected }),
  errors: ["not_found", "catalog_in_use"],
});

/** `DELETE /admin/v1/apps/{appId}/catalog` */
export const dropCatalog = defineCall({
  id: "dropCatalog",
  method: "DELETE",
  path: "/admin/v1/apps/:appId/catalog",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, mode: z.enum(["test"]) }),
  tag: "Administration",
  summary: "Drop the catalog of test mode",
  description: "Test mode uses the catalog of live mode again. Refused while test users have a plan or " +
    "pack that the catalog of live mode lacks. Changes nothing if test mode has no catalog of its own.",
  answer: z.strictObject(changeMembers),
  errors: ["not_found", "catalog_in_use"],
});

/** `POST /admin/v1/apps/{appId}/catalog/promote` */
export const promoteCatalog = defineCall({
  id: "promoteCatalog",
  method: "POST",
  path: "/admin/v1/apps/:appId/catalog/promote",
  access: "admin",
  about: "appId",
  input: z.object({
    ...appPath,
    expectedVersion: z.int().min(0).nullish()
      .describe("The version of the catalog of test mode. The call is refused if it has another one"),
  }),
  tag: "Administration",
  summary: "Promote the catalog of test mode",
  description: "Puts it in force for both modes, as a new version. changes are those of live mode.",
  answer: z.strictObject(changeMembers),
  errors: ["not_found", "catalog_in_use"],
});

/** `GET /admin/v1/apps/{appId}/catalog/versions` */
export const listCatalogVersions = defineCall({
  id: "listCatalogVersions",
  method: "GET",
  path: "/admin/v1/apps/:appId/catalog/versions",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Administration",
  summary: "List the versions of the catalog",
  description: `The newest ${versionsKeptMax}, newest first. Both modes share one sequence of versions.`,
  answer: z.array(
    z.strictObject({
      version: z.int(),
      at: time,
      who: z.string().nullable()
        .describe('Name of the operator of the console, or "api"; null for the oldest one after an upgrade'),
      changes: z.array(change).describe(`Changes to the version before; at most ${changesKeptMax}`),
      mode: mode.describe("test: applied to test mode alone"),
    }).meta({ id: "CatalogVersion" }),
  ),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/catalog/versions/{version}` */
export const getCatalogVersion = defineCall({
  id: "getCatalogVersion",
  method: "GET",
  path: "/admin/v1/apps/:appId/catalog/versions/:version",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, version: wholeNumber(1, 999_999_999) }),
  tag: "Administration",
  summary: "Get a version of the catalog",
  description: "The whole document. PUT it to put it back in force.",
  answer: z.strictObject({ version: z.int(), ...catalogSchema.shape }),
  errors: ["not_found"],
});
