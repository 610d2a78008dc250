// Requests with an API key that failed.

import type { RequestLog } from "../../src/audit/request_log.ts";
import type { Clock } from "../../src/process/clock.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { REQUEST_LOG_LIMITS } from "../../src/process/sent_limits.ts";
import {
  type FailedRequestRecord,
  listFailedRequests,
  type RequestPlace,
} from "../../src/storage/queries/failed_requests.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import type { DataOf } from "../contract/definition.ts";
import { timeText } from "../contract/fields.ts";
import * as contract from "../contract/requests.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { appOf } from "./admin.ts";

interface World {
  readonly registry: Pick<Registry, "apps">;
  readonly requestLog: Pick<RequestLog, "write">;
  readonly clock: Clock;
  readonly database: Parameters<typeof listFailedRequests>[0];
}

const endpoint = keylessEndpointsOn<World>();

/** The failed requests of an app, and unknown keys. */
export const REQUESTS: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.listRequests, async ({ world, input }) => {
    const { appId, cursor, limit = REQUEST_LIMITS.feedLimitDefault, ...filter } = input;
    appOf(world, appId);
    const after = cursor === undefined ? null : placeOf(cursor);
    const rows = await read(world, { ...filter, appId, after, limit: limit + 1 });
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return success({
      requests: shown.map(showRequest),
      cursor: rows.length > limit && last !== undefined ? `${last.last_at_ms}-${last.id}` : null,
    });
  }, { across: { about: ({ appId }) => ({ appId }) } }),
  endpoint(contract.listUnknownKeys, async ({ world }) => {
    const limit = REQUEST_LOG_LIMITS.unknownShownMax;
    const rows = await read(world, { appId: "", after: null, limit });
    return success({ keys: rows.map(showKey) });
  }, {
    across: {
      join: (answers) => ({
        keys: answers.flatMap(({ keys }) => keys)
          .toSorted((one, other) => one.lastAt < other.lastAt ? 1 : -1)
          .slice(0, REQUEST_LOG_LIMITS.unknownShownMax),
      }),
    },
  }),
];

/** Reads rows, those that this process has not written yet included. */
async function read(world: World, query: Omit<Parameters<typeof listFailedRequests>[1], "keptFrom">) {
  await world.requestLog.write();
  const keptFrom = world.clock.now() - REQUEST_LOG_LIMITS.keptMs;
  return await listFailedRequests(world.database, { ...query, keptFrom });
}

const CURSOR = /^(\d{1,15})-(\d{1,15})$/;

function placeOf(cursor: string): RequestPlace {
  const [, lastAt, id] = CURSOR.exec(cursor) ?? [];
  if (lastAt === undefined) throw invalidMember("cursor", "must be the cursor of a previous page");
  return { lastAt: Number(lastAt), id: Number(id) };
}

function showRequest(row: FailedRequestRecord): DataOf<typeof contract.listRequests>["requests"][number] {
  const requestIds = JSON.parse(row.ids) as string[];
  return {
    requestId: requestIds[0] ?? "",
    requestIds,
    at: timeText(row.last_at_ms),
    mode: row.mode,
    method: row.method,
    path: row.path ?? row.route,
    status: row.status,
    code: row.code,
    message: row.message,
    keyId: row.key_id,
    keyPrefix: row.key_prefix,
    userId: row.user_id,
    body: row.body,
    count: row.count,
    firstAt: timeText(row.first_at_ms),
    lastAt: timeText(row.last_at_ms),
  };
}

function showKey(row: FailedRequestRecord): DataOf<typeof contract.listUnknownKeys>["keys"][number] {
  return {
    keyPrefix: row.key_prefix,
    method: row.method,
    route: row.route,
    code: row.code,
    count: row.count,
    firstAt: timeText(row.first_at_ms),
    lastAt: timeText(row.last_at_ms),
  };
}
