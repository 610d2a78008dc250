// Makes browsers use https only, where the public address of the service is https. TLS itself ends in front of the
// process.

const HEADER = "strict-transport-security";
const YEAR = "max-age=31536000";

/** Returns a handler whose answers carry the header, where the public address is https; else the handler unchanged. */
export function withStrictTransport(handler: Deno.ServeHandler, publicUrl: string | null): Deno.ServeHandler {
  if (publicUrl?.startsWith("https:") !== true) return handler;
  return async (request, info) => {
    const response = await handler(request, info);
    response.headers.set(HEADER, YEAR);
    return response;
  };
}
