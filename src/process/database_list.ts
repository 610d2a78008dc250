// HOLDFAST_DATABASES: the databases of a service with several of them, as eu1=postgres://...,eu2=postgres://...

/** A database of the settings. */
export interface NamedDatabase {
  /** Null for the database of DATABASE_URL. */
  readonly name: string | null;
  readonly url: string;
}

/** The most databases: each has a range of numbers of its own. */
const DATABASES_MAX = 64;
const ENTRY = /^([a-z][a-z0-9-]{0,30})=(.*)$/s;
/** A comma within a URL, as between two hosts, is followed by no name. */
const BETWEEN = /,\s*(?=[a-z][a-z0-9-]*=)/;
const FORM = "must be a list such as eu1=postgres://user:password@host:5432/name,eu2=postgres://..., " +
  "with names of a to z, 0 to 9 and -";

/**
 * Reads the list; returns what is wrong with it as a text, which contains no URL.
 *
 * @param faultOf returns what is wrong with a URL; null for nothing
 */
export function readDatabases(
  text: string,
  faultOf: (url: string) => string | null,
): NamedDatabase[] | string {
  const databases: NamedDatabase[] = [];
  for (const entry of text.split(BETWEEN)) {
    const [, name, url] = ENTRY.exec(entry.trim()) ?? [];
    if (name === undefined || url === undefined) return FORM;
    const fault = faultOf(url);
    if (fault !== null) return `"${name}" ${fault}`;
    if (databases.some((other) => other.name === name)) return `names "${name}" twice`;
    const same = databases.find((other) => other.url === url);
    if (same !== undefined) return `has the same URL for "${same.name}" and "${name}"`;
    databases.push({ name, url });
  }
  return databases.length <= DATABASES_MAX ? databases : `has more than ${DATABASES_MAX} databases`;
}
