// Values in COPY's text format, as the journal has them.

import type { ColumnValue } from "../../src/storage/database.ts";

const NUMBERS =
  /_ms$|\.(user_key|account_key|realm|used|price_row|issued|priority|from_key|to_key|merged_into|parent_key|caused_by|opted_out|told|open_holds)$|^users\.key$|^idempotency\.status$|^subscriptions\.quantity$|^top_ups\.(quantity|amount|attempt)$|^user_summaries\.percent$/;
const BOOLEANS = /\.(ended|per_unit|told_cents|erasing|plan_carried|confirmed|called_off)$/;
const UNESCAPED: Record<string, string> = { n: "\n", r: "\r", t: "\t", "\\": "\\" };

/** The value of a cell in COPY's text format. */
export function valueOf(column: string, text: string): ColumnValue {
  if (text === "\\N") return null;
  if (BOOLEANS.test(column)) return text === "t";
  if (NUMBERS.test(column)) return Number(text);
  return text.replace(/\\(.)/g, (_, char: string) => UNESCAPED[char] ?? char);
}
