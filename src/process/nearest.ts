// The known name that was probably meant, for messages about unknown names.

/** Above this share of changed letters, two names count as unrelated. */
const CHANGES_SHARE_MAX = 1 / 3;

/** Returns the known name with the fewest changed letters. Case does not count. */
export function nearestName(name: string, known: Iterable<string>): string | null {
  return nearest(name, known)?.candidate ?? null;
}

/** Returns the nearest known name when it is close enough, else null. */
export function likelyName(name: string, known: Iterable<string>): string | null {
  const found = nearest(name, known);
  const isLikely = found !== null && found.changes <= Math.max(1, name.length * CHANGES_SHARE_MAX);
  return isLikely ? found.candidate : null;
}

function nearest(name: string, known: Iterable<string>): { candidate: string; changes: number } | null {
  let found: { candidate: string; changes: number } | null = null;
  for (const candidate of known) {
    const changes = changesBetween(name.toLowerCase(), candidate.toLowerCase());
    if (found === null || changes < found.changes) found = { candidate, changes };
  }
  return found;
}

/** How many letters must be added, removed or replaced to make one text of the other (Levenshtein distance). */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
