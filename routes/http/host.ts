// Checks the header Host. The runtime builds a request's address from it unchecked, so a host with a slash in it would
// change the path, and could get a request past a proxy that lets only some paths through.

const HOST = /^([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/;

/** The host that was found good last: most requests of a process name the same one. */
let known = "";

/** Whether a request names a host, or none at all. */
export function namesHost(request: Request): boolean {
  const host = request.headers.get("host");
  if (host === null || host === "" || host === known) return true;
  if (!HOST.test(host) || !URL.canParse(`http://${host}/`)) return false;
  known = host;
  return true;
}
