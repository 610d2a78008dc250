// Tables. A column is defined once: its heading, and what it shows of a row.

import type { Child } from "hono/jsx";

/** A column of a table. */
export interface Column<Row> {
  /** The heading; on a phone, the label of each value. */
  readonly head: string;
  /** What the column shows of a row. */
  readonly cell: (row: Row, index: number) => Child;
  /** The class of the cells. "head" makes each a heading of its row; numbers are aligned to the right. */
  readonly kind?: "number" | "actions" | "prompt" | "head";
  /** Whether only screen readers read the heading, because the links below it explain themselves. */
  readonly hidesHead?: boolean;
  /** Explains the heading on hover. */
  readonly hint?: string;
  /** The link that sorts the list by this column, and how it is sorted now; null for not. */
  readonly sort?: { readonly href: string; readonly order: "ascending" | "descending" | null };
}

/**
 * A table. On a phone each row becomes a list of labels and values, unless `isWide`.
 *
 * @param columns null for a column that this person does not get
 * @param empty the text in place of a table without rows
 * @param foot the cells of a last row with totals
 * @param idOf the id of a row's element, for links that lead to the row
 */
export function Table<Row>({ columns, rows, empty, idOf, isWide = false, foot }: {
  columns: readonly (Column<Row> | null)[];
  rows: readonly Row[];
  empty?: Child;
  idOf?: (row: Row) => string;
  isWide?: boolean;
  foot?: readonly Child[];
}) {
  if (rows.length === 0 && empty !== undefined) return <p class="empty">{empty}</p>;
  const shown = columns.filter((column) => column !== null);
  return (
    <table class={isWide ? undefined : "stack"}>
      <thead>
        <tr>{shown.map((column) => <Head {...column} />)}</tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr id={idOf?.(row)}>
            {shown.map(({ head, cell, kind, hidesHead }) =>
              kind === "head"
                ? <th scope="row">{cell(row, index)}</th>
                : <td class={kind} data-label={hidesHead === true ? undefined : head}>{cell(row, index)}</td>
            )}
          </tr>
        ))}
      </tbody>
      {foot === undefined ? null : (
        <tfoot>
          <tr>
            {shown.map(({ head, kind }, place) => (
              <td class={kind} data-label={foot[place] === "" ? undefined : head}>{foot[place]}</td>
            ))}
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function Head(
  { head, kind, hint, sort, hidesHead = false }: Omit<Column<never>, "cell">,
) {
  return (
    <th
      class={kind === "head" ? undefined : kind}
      title={hint}
      aria-sort={sort?.order ?? undefined}
    >
      {hidesHead
        ? <span class="visually-hidden">{head}</span>
        : sort === undefined
        ? head
        : <a class="sort" href={sort.href}>{head}</a>}
    </th>
  );
}
