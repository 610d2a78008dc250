// Tells browsers to come over https alone, where the operator says that the service is reached that way. TLS itself ends
// in front of the process.

const HEADER = "strict-transport-security";
const YEAR = "max-age=31536000";

/** The handler as it is, or, with a public address of https, one whose answers all carry the header. */
export function withStrictTransport(handler: Deno.ServeHandler, publicUrl: string | null): Deno.ServeHandler {
  if (publicUrl?.startsWith("https:") !== true) return handler;
  return async (request, info) => {
    const response = await handler(request, info);
    response.headers.set(HEADER, YEAR);
    return response;
  };
}
