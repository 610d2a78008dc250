// The audit log: every write that people make through console and admin API, and every sign-in. A write is noted before it
// begins and moves into the log when it ends, so that neither a crash nor a lost answer leaves it out. A refused write
// changed nothing, so its note is dropped.

import type { IdSource } from "../domain/values/ids.ts";
import type { Clock } from "../process/clock.ts";
import { AUDIT_LIMITS } from "../process/limits.ts";
import type { Database } from "../storage/database.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import {
  adoptBegun,
  type AuditRow,
  beginAudit,
  dropBegun,
  endAudit,
  insertAudit,
  listAudit,
} from "../storage/stores/audit_store.ts";

/** What the log uses of a running term. */
export interface AuditWorld {
  readonly inCell: InCell;
  readonly ids: IdSource;
  readonly clock: Clock;
}

/** Who acts, and through which interface. */
export interface Author {
  readonly who: string;
  readonly via: "console" | "api";
}

/** A write that is about to happen. */
export interface AuditedAction extends Author {
  /** The operation id of the API reference, such as "createKey". */
  readonly what: string;
  readonly appId: string | null;
  readonly mode: "live" | "test" | null;
  readonly userId: string | null;
}

/** Short values before or after a write. Never a secret. */
export type Values = Readonly<Record<string, unknown>>;

/** How a write ended. */
export type Ending =
  | {
    readonly kind: "done";
    readonly appId: string | null;
    readonly before: Values | null;
    readonly after: Values | null;
  }
  | { readonly kind: "refused" }
  /** The write may have happened or not. */
  | { readonly kind: "unknown" };

const UNKNOWN = JSON.stringify({ outcome: "unknown" });

/** Rows of the log belong to no cell: every process may add one, and rows never change. */
export const NO_CELLS: readonly number[] = [];

/** Notes that a write begins; returns the function to call when it has ended. */
export async function beginAudited(
  { inCell, ids, clock }: AuditWorld,
  action: AuditedAction,
): Promise<(ending: Ending) => Promise<void>> {
  const row = { ...action, id: ids.next("audit"), at: clock.now() };
  await inCell(NO_CELLS, async (session) => {
    await adoptBegun(session, AUDIT_LIMITS.begunMs, UNKNOWN);
    await beginAudit(session, row);
  });
  return (ending) =>
    inCell(NO_CELLS, (session) => {
      const { id } = row;
      switch (ending.kind) {
        case "refused":
          return dropBegun(session, id);
        case "unknown":
          return endAudit(session, { id, appId: null, before: null, after: UNKNOWN });
        case "done": {
          const { appId, before, after } = ending;
          return endAudit(session, { id, appId, before: textOf(before), after: textOf(after) });
        }
      }
    });
}

/** Adds an entry for something that has already happened, such as a sign-in. */
export async function recordAudited(
  { inCell, ids, clock }: AuditWorld,
  action: AuditedAction,
  after: Values | null = null,
): Promise<void> {
  const row = { ...action, id: ids.next("audit"), at: clock.now(), before: null, after: textOf(after) };
  await inCell(NO_CELLS, (session) => insertAudit(session, row));
}

/** An entry of the log as readers get it. */
export interface AuditEntry extends Omit<AuditRow, "before" | "after"> {
  readonly before: ShortValues | null;
  readonly after: ShortValues | null;
}

/** A filter and a page of entries. */
type AuditQuery = Parameters<typeof listAudit>[1];

/** Reads a page of the log, newest first, and the cursor of the next page; null after the last. */
export async function readAudit(
  { database }: { readonly database: Pick<Database, "query"> },
  query: AuditQuery,
): Promise<{ readonly entries: AuditEntry[]; readonly next: string | null }> {
  const rows = await listAudit(database, { ...query, limit: query.limit + 1 });
  const shown = rows.slice(0, query.limit);
  const entries = shown.map((row) => ({ ...row, before: valuesOf(row.before), after: valuesOf(row.after) }));
  return { entries, next: rows.length > shown.length ? shown.at(-1)?.id ?? null : null };
}

/** Values in the form that the log stores. */
type ShortValues = Readonly<Record<string, string | number | boolean | null>>;

/** Cuts values to the lengths that the log stores; objects and arrays become JSON text. */
export function shortened(values: Values): ShortValues {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.slice(0, AUDIT_LIMITS.valuesMax).map((
      [name, value],
    ) => [cut(name, AUDIT_LIMITS.nameLengthMax), short(value)]),
  );
}

function short(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === "number" || typeof value === "boolean") return value;
  return cut(typeof value === "string" ? value : JSON.stringify(value), AUDIT_LIMITS.valueLengthMax);
}

/** Cuts a text without splitting a character. */
function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function textOf(values: Values | null): string | null {
  return values === null ? null : JSON.stringify(shortened(values));
}

function valuesOf(text: string | null): ShortValues | null {
  return text === null ? null : JSON.parse(text) as ShortValues;
}
