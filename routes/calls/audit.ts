// The audit log as the admin API shows it. beyond.md, section 8, "Audit".

import { type AuditEntry, readAudit } from "../../src/audit/audit.ts";
import { ID_PREFIX } from "../../src/domain/values/ids.ts";
import { AUDIT_LIMITS } from "../../src/process/limits.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { listAudit } from "../contract/service.ts";
import { invalidMember } from "../http/errors.ts";
import { timeText } from "../contract/fields.ts";

type World = Parameters<typeof readAudit>[0];

const endpoint = keylessEndpointsOn<World>();

const CURSOR = new RegExp(`^${ID_PREFIX.audit}[0-9a-v]{20}$`);

export const AUDIT: readonly KeylessEndpoint<World>[] = [
  endpoint(listAudit, async ({ world, input }) => {
    const { appId = null, userId = null, limit = AUDIT_LIMITS.pageDefault, cursor = null } = input;
    if (cursor !== null && !CURSOR.test(cursor)) {
      throw invalidMember("cursor", "is none that this call gave");
    }
    const { entries, next } = await readAudit(world, { appId, userId, before: cursor, limit });
    return success({ entries: entries.map(showEntry), nextCursor: next });
  }),
];

function showEntry({ id, at, who, via, what, appId, mode, userId, before, after }: AuditEntry) {
  return { auditId: id, at: timeText(at), who, via, what, appId, mode, userId, before, after };
}
