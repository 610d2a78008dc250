// The difference between two texts, line by line, with a few unchanged lines around each change.

/** A line of a difference; a "gap" replaces unchanged lines that are left out. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
}

const AROUND = 3;
/** The most changed lines of a text: the comparison needs memory for every pair of lines. */
const LINES_MAX = 2_000;

/** The difference; null where too many lines changed. */
export function diffLines(before: string, after: string): DiffLine[] | null {
  const [from, to] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < from.length && head < to.length && from[head] === to[head]) head++;
  let tail = 0;
  while (
    tail < from.length - head && tail < to.length - head &&
    from[from.length - 1 - tail] === to[to.length - 1 - tail]
  ) tail++;
  const [old, fresh] = [from.slice(head, from.length - tail), to.slice(head, to.length - tail)];
  if (old.length > LINES_MAX || fresh.length > LINES_MAX) return null;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return folded([
    ...from.slice(0, head).map(same),
    ...middle(old, fresh),
    ...from.slice(from.length - tail).map(same),
  ]);
}

/** Compares by the longest common subsequence. */
function middle(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  const width = fresh.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] as number;
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = fresh.length - 1; column >= 0; column--) {
      common[row * width + column] = old[row] === fresh[column]
        ? at(row + 1, column + 1) + 1
        : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      lines.push({ kind: "same", text: old[row++] as string });
      column++;
    } else if (row < old.length && (column >= fresh.length || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ kind: "removed", text: old[row++] as string });
    } else {
      lines.push({ kind: "added", text: fresh[column++] as string });
    }
  }
  return lines;
}

function folded(lines: readonly DiffLine[]): DiffLine[] {
  const isNear = (index: number) =>
    lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(({ kind }) => kind !== "same");
  const shown: DiffLine[] = [];
  lines.forEach((line, index) => {
    if (isNear(index)) shown.push(line);
    else if (shown.at(-1)?.kind !== "gap") shown.push({ kind: "gap", text: "" });
  });
  return shown;
}
