// The audit log as the admin API shows it. beyond.md, section 8, "Audit".

import { z } from "zod";
import { type AuditEntry, readAudit } from "../../src/audit/audit.ts";
import { ID_PREFIX } from "../../src/domain/values/ids.ts";
import { AUDIT_LIMITS } from "../../src/process/limits.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { auditAnswer } from "../contract/schemas/admin.ts";
import { timeText, wholeNumber } from "../contract/schemas/fields.ts";

type World = Parameters<typeof readAudit>[0];

const endpoint = keylessEndpointsOn<World>();

const CURSOR = new RegExp(`^${ID_PREFIX.audit}[0-9a-v]{20}$`);

export const AUDIT: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/audit",
    input: z.object({
      appId: z.string().optional(),
      userId: z.string().optional(),
      limit: wholeNumber(1, AUDIT_LIMITS.pageMax).optional(),
      cursor: z.string().optional(),
    }),
    doc: {
      id: "listAudit",
      tag: "Administration",
      summary: "What people did through console and admin API, newest first",
      description:
        "Every write and every sign-in, failed ones too. cursor is the nextCursor of the page before. " +
        "userId finds what was done to exactly this id: aliases have entries of their own.",
      answer: auditAnswer,
      errors: [],
    },
    handle: async ({ world, input }) => {
      const { appId = null, userId = null, limit = AUDIT_LIMITS.pageDefault, cursor = null } = input;
      if (cursor !== null && !CURSOR.test(cursor)) {
        throw invalidMember("cursor", "is none that this call gave");
      }
      const { entries, next } = await readAudit(world, { appId, userId, before: cursor, limit });
      return success({ entries: entries.map(showEntry), nextCursor: next });
    },
  }),
];

function showEntry({ id, at, who, via, what, appId, mode, userId, before, after }: AuditEntry) {
  return { auditId: id, at: timeText(at), who, via, what, appId, mode, userId, before, after };
}
