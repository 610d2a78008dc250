// Colours of charts: a name has one colour on every page, whatever else a chart shows.

/** The number of colours; the styles have a class for each. */
const COLOURS = 12;

/**
 * Chooses a class for each of some names, such as "colour-3". A name keeps the colour that its letters give; where that is
 * taken by a name before it in the alphabet, it gets the next one.
 */
export function coloursOf(names: Iterable<string>): ReadonlyMap<string, string> {
  const taken = new Map<number, string>();
  const colours = new Map<string, string>();
  for (const name of [...new Set(names)].sort()) {
    let place = hashOf(name);
    for (let step = 0; step < COLOURS && taken.has(place); step++) place = (place + 1) % COLOURS;
    taken.set(place, name);
    colours.set(name, classOf(place));
  }
  return colours;
}

/** The class of a name; of one that was not there to be chosen for, by its letters alone. */
export function colourOf(colours: ReadonlyMap<string, string>, name: string): string {
  return colours.get(name) ?? classOf(hashOf(name));
}

function classOf(place: number): string {
  return `colour-${place + 1}`;
}

function hashOf(name: string): number {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + (char.codePointAt(0) as number)) >>> 0;
  return hash % COLOURS;
}
