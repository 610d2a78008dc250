// Values in COPY's text format, as the journal has them.

import { type ColumnValue, copiedText } from "../../src/storage/database.ts";

const NUMBERS =
  /_ms$|\.(user_key|account_key|realm|used|price_row|issued|priority|from_key|to_key|merged_into|parent_key|caused_by|opted_out|told|open_holds)$|^users\.key$|^idempotency\.status$|^subscriptions\.quantity$|^top_ups\.(quantity|amount|attempt)$|^user_summaries\.percent$/;
const BOOLEANS = /\.(ended|per_unit|told_cents|erasing|plan_carried|confirmed|called_off)$/;

type Kind = "boolean" | "number" | "text";
/** By table and column. */
const kinds = new Map<string, Map<string, Kind>>();

function kindOf(table: string, column: string): Kind {
  const ofTable = kinds.getOrInsertComputed(table, () => new Map());
  return ofTable.getOrInsertComputed(column, () => {
    const name = `${table}.${column}`;
    return BOOLEANS.test(name) ? "boolean" : NUMBERS.test(name) ? "number" : "text";
  });
}

/** The value of a cell in COPY's text format. */
export function valueOf(table: string, column: string, text: string): ColumnValue {
  const value = copiedText(text);
  if (value === null) return null;
  const kind = kindOf(table, column);
  if (kind === "boolean") return value === "t";
  return kind === "number" ? Number(value) : value;
}
