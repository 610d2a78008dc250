// What a proxy in front relies on, where it lets only some paths through: the header Host and the raw path. The
// runtime builds a request's address from the host unchecked, so a host with a slash in it would change the path.

const HOST = /^([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/;

/** The last valid host: most requests of a process have the same. */
let known = "";

/** Whether a request has a valid host, or none at all. */
export function namesHost(request: Request): boolean {
  const host = request.headers.get("host");
  if (host === null || host === "" || host === known) return true;
  if (!HOST.test(host) || !URL.canParse(`http://${host}/`)) return false;
  known = host;
  return true;
}

/**
 * The path of a request without any decoding. A route must not match an escaped form of its own words: a proxy in front compares
 * what was sent, so `/%6detrics` would pass a rule for `/metrics`. Parameters are decoded where they are read.
 */
export function rawPathOf({ url }: Request): string {
  const start = url.indexOf("/", url.indexOf(":") + 4);
  const query = url.indexOf("?", start);
  const path = url.slice(start, query < 0 ? undefined : query);
  return path.includes("#") ? path.slice(0, path.indexOf("#")) : path;
}
