// Runs. Every call of a run writes it anew, so its metadata, a text of the caller, is in the line of the new run alone:
// memory does not keep it, and a put never changes it.

import type { Unit } from "../../domain/catalog/plan.ts";
import type { Run, RunLimit } from "../../domain/state/run.ts";
import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import { column, mapped, type Table, table } from "./columns.ts";

const RUN_TABLE = table<Run>("runs", 1, {
  id: column("id"),
  userKey: column("user_key", { mutable: true }),
  realm: column("realm"),
  name: column("name"),
  metadata: column("metadata"),
  around: mapped<readonly string[]>(
    "around",
    (ids) => ids.length === 0 ? null : ids.join(","),
    (value) => value === null ? [] : (value as string).split(","),
  ),
  limits: mapped<readonly RunLimit[]>("limits", textOfLimits, (value) => limitsOf(value as string), {
    mutable: true,
  }),
  openHolds: column("open_holds", { mutable: true }),
  createdAt: column("created_at_ms"),
  expiresAt: column("expires_at_ms"),
  endedAt: column("ended_at_ms", { mutable: true }),
  reason: column("reason", { mutable: true }),
});

export const RUNS: Table<Run> = { ...RUN_TABLE, over: keepMetadata };

const METADATA = RUN_TABLE.columns.indexOf("metadata");

/** Gives a later line of a run the metadata of an earlier one. */
function keepMetadata(earlier: string, later: string): string {
  const [before, after] = [earlier.split("\t"), later.split("\t")];
  after[METADATA] = before[METADATA] as string;
  return after.join("\t");
}

/** Encodes limits as JSON: [[limitId, unit, event, "quota", "count", "held"], ...]. */
function textOfLimits(limits: readonly RunLimit[]): string {
  return JSON.stringify(
    limits.map(({ id, unit, event, quota, count, held }) => [
      id,
      unit,
      event,
      decimalOf(quota),
      decimalOf(count),
      decimalOf(held),
    ]),
  );
}

type LimitParts = [id: string, unit: Unit, event: string, quota: string, count: string, held: string];

function limitsOf(text: string): RunLimit[] {
  return (JSON.parse(text) as LimitParts[]).map(([id, unit, event, quota, count, held]) => ({
    id,
    unit,
    event,
    quota: parseAmount(quota),
    count: parseAmount(count),
    held: parseAmount(held),
  }));
}
