// Rows of equal time. Lists are ordered by time, then by id. Ids grow with writing, but what falls due may be
// written at any later moment: so where a merge made one list of two users' rows, the order between a row that
// fell due and the other user's rows of the same time is the system's own. It is learnt like an id: the model
// follows the first answer that shows it, and holds on to it from then on.

import type { WireData } from "./document.ts";
import type { Dated } from "./state.ts";

/** Whether it is sure which of two rows of one time has the smaller id. */
function isDecided(a: Dated, b: Dated): boolean {
  const [earlier, later] = a.no < b.no ? [a, b] : [b, a];
  // Of one user, or of a user that the other was part of by then: written one after the other.
  if (later.by.includes(earlier.by[0]!)) return true;
  return !earlier.due && !later.due;
}

/**
 * Reorders the wanted rows of a list, which is oldest first, as an observed page shows them, newest first.
 * Moves a row only among rows of its own time, and never past one towards which its order is decided.
 * @param cursor The row that the page comes after.
 */
export function followOrder<T extends Dated>(
  list: T[],
  isWanted: (row: T) => boolean,
  cursor: T | null,
  shown: WireData[],
  answerOf: (row: T) => WireData,
): void {
  const rows = list.toReversed().filter((row) => row !== cursor && isWanted(row));
  const isOlder = (row: T) => cursor === null || list.indexOf(row) < list.indexOf(cursor);
  // Which side of the cursor these are on is open.
  const floating = rows.filter((row) => cursor !== null && row.at === cursor.at && !isDecided(row, cursor));
  const newer = rows.filter((row) => !isOlder(row) && !floating.includes(row));
  let left = rows.filter((row) => isOlder(row) || floating.includes(row));
  const page: T[] = [];
  for (const entry of shown) {
    const mustCome = left.find((row) => !floating.includes(row));
    const canCome = left.filter((row, place) =>
      (floating.includes(row) || row.at === mustCome?.at) &&
      left.slice(0, place).every((before) =>
        floating.includes(before) || before.at !== row.at || !isDecided(before, row)
      )
    );
    const next = canCome.find((row) => fits(answerOf(row), entry)) ?? mustCome;
    if (!next) break;
    page.push(next);
    left = left.filter((row) => row !== next);
  }
  // A floating row that was passed over comes before the cursor, unless the page ends within its time.
  const endsInTie = page.at(-1)?.at === cursor?.at;
  const passed = left.filter((row) => floating.includes(row) && !(endsInTie && isOlder(row)));
  const rest = left.filter((row) => !passed.includes(row));
  const ends = cursor !== null && isWanted(cursor) ? [cursor] : [];
  const ordered = [...newer, ...passed, ...ends, ...page, ...rest].reverse();
  const wanted = new Set(ordered);
  for (const [place, row] of list.entries()) if (wanted.has(row)) list[place] = ordered.shift()!;
}

/** Whether an entry shows a row; an id that is not known yet fits any. */
function fits(answer: WireData, entry: WireData): boolean {
  return Object.entries(answer).every(([name, value]) =>
    Object.is(value, entry[name]) || (name === "id" && String(value).startsWith("«"))
  );
}
