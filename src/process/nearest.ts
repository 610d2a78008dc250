// Which known name somebody probably meant, for messages about names that nobody knows.

/** Above a third of the name's length in changes, two names have nothing to do with each other. */
const CHANGES_SHARE_MAX = 1 / 3;

/** The known name with the fewest changed letters, or null where none is close. Case does not count. */
export function nearestName(name: string, known: Iterable<string>): string | null {
  let nearest: string | null = null;
  let fewest = Math.max(1, Math.floor(name.length * CHANGES_SHARE_MAX)) + 1;
  for (const candidate of known) {
    const changes = changesBetween(name.toLowerCase(), candidate.toLowerCase());
    if (changes >= fewest) continue;
    fewest = changes;
    nearest = candidate;
  }
  return nearest;
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
