// Reads DATABASE_URL: one server, or several among which the primary is used, as in libpq.

/** One server of an address. */
export interface ServerPlace {
  /** A URL with one host, for the driver. */
  readonly address: string;
  /** The folder of the server's socket; null where the URL names a host. */
  readonly folder: string | null;
  /** The host and port, or the folder, for people. */
  readonly name: string;
}

/** The servers of an address, in the order in which they are tried. */
interface ServerAddress {
  readonly servers: readonly ServerPlace[];
  /** Whether a server that is a standby is passed over. */
  readonly needsPrimary: boolean;
}

/** The most servers that one URL may name. */
const SERVERS_MAX = 16;
const FORM = "must be a URL such as postgres://user:password@host:5432/name";
const URL_PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/s;
const ATTRIBUTES = "target_session_attrs";

/**
 * Reads an address. Several hosts are separated by commas, each with its own port. A standby is passed over where
 * `target_session_attrs` is `primary` or `read-write`, which is the default with several hosts.
 *
 * @returns a string with what is wrong if the text is not an address
 */
export function readServerAddress(text: string): ServerAddress | string {
  const [, head, hosts = "", tail] = URL_PARTS.exec(text) ?? [];
  const urls = hosts.split(",").map((host) => `${head}${host}${tail}`);
  const isList = urls.length > 1;
  if (head === undefined || !urls.every((url) => URL.canParse(url))) return FORM;
  if (isList && hosts.split(",").includes("")) return "has an empty host in its list";
  if (urls.length > SERVERS_MAX) return `names more than ${SERVERS_MAX} servers`;
  const asked = new URL(urls[0] as string).searchParams.get(ATTRIBUTES) ?? (isList ? "primary" : "any");
  if (!["any", "primary", "read-write"].includes(asked) || isList && asked === "any") {
    return `${ATTRIBUTES} must be primary: a standby takes no writes`;
  }
  return { servers: urls.map(placeOf), needsPrimary: asked !== "any" };
}

/** Reads an address that the settings have accepted. @throws Error if the text is not one */
export function serversOf(text: string): ServerAddress {
  const read = readServerAddress(text);
  if (typeof read === "string") throw new Error(`The address of the database ${read}`);
  return read;
}

/**
 * Splits a URL into the folder of the server's socket, if it names one, and the URL without it. As in libpq the folder may
 * be in place of the host or in the parameter `host`. The driver would resolve the first as a host name and send the
 * second as a session setting.
 */
function placeOf(text: string): ServerPlace {
  const url = new URL(text);
  url.searchParams.delete(ATTRIBUTES);
  const folder = url.searchParams.get("host") ?? decodeURIComponent(url.hostname);
  if (!folder.startsWith("/")) return { address: url.href, folder: null, name: url.host };
  url.hostname = "localhost";
  url.searchParams.delete("host");
  return { address: url.href, folder, name: folder };
}
