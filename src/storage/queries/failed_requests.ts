// Failed requests of an app, and of unknown keys.

import type { Millis } from "../../domain/values/period.ts";
import type { Database, Param } from "../database.ts";

/** Selects the rows of a page. */
interface FailedRequestQuery {
  readonly appId: string;
  /** Rows with a last request up to this moment have expired. */
  readonly keptFrom: Millis;
  readonly mode?: string | undefined;
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  /** A part of the path. */
  readonly path?: string | undefined;
  readonly requestId?: string | undefined;
  /** The last row of the page before; null for the first page. */
  readonly after: RequestPlace | null;
  readonly limit: number;
}

/** The place of a row in the order of the list. */
export interface RequestPlace {
  readonly lastAt: Millis;
  readonly id: number;
}

/** A stored row. */
export interface FailedRequestRecord {
  readonly id: number;
  readonly mode: "live" | "test";
  readonly key_id: string;
  readonly key_prefix: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly code: string;
  readonly count: number;
  readonly first_at_ms: Millis;
  readonly last_at_ms: Millis;
  /** As JSON. */
  readonly ids: string;
  readonly path: string | null;
  readonly message: string | null;
  readonly user_id: string | null;
  readonly body: string | null;
}

/** Lists a page of rows, newest last request first. An app has so few that filters read all of them. */
export function listFailedRequests(
  database: Pick<Database, "query">,
  { appId, keptFrom, mode, status, code, path, requestId, after, limit }: FailedRequestQuery,
): Promise<FailedRequestRecord[]> {
  const params: Param[] = [appId, keptFrom, limit];
  const conditions = ["app_id = $1", "last_at_ms > $2::bigint"];
  const add = (value: Param | undefined, condition: (place: string) => string) => {
    if (value !== undefined) conditions.push(condition(`$${params.push(value)}`));
  };
  add(mode, (place) => `mode = ${place}`);
  add(status, (place) => `status = ${place}::int`);
  add(code, (place) => `code = ${place}`);
  add(path, (place) => `strpos(coalesce(path, route), ${place}) > 0`);
  add(requestId, (place) => `request_ids @> array[${place}::text]`);
  if (after !== null) {
    const places = [params.push(after.lastAt), params.push(after.id)];
    conditions.push(`(last_at_ms, id) < ($${places[0]}::bigint, $${places[1]}::bigint)`);
  }
  return database.query<FailedRequestRecord>(
    `select *, to_json(request_ids)::text as ids from failed_requests where ${conditions.join(" and ")}
     order by last_at_ms desc, id desc limit $3::int`,
    params,
  );
}
