// Checks the header Host. The runtime builds a request's address from it unchecked, so a host with a slash in it would
// change the path, and a request could pass a proxy that lets only some paths through.

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
