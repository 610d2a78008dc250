// HEAD: the answer of GET without its body. The library runs the handler of GET and drops what it returns; a streamed body
// would then stay open, with all that it holds. So it is cancelled here, and a handler that would compute much asks first.

const HEADS = new WeakSet<Request>();

/** Whether a request that a handler of GET got is a HEAD. */
export function isHead(request: Request): boolean {
  return HEADS.has(request);
}

/** Answers a HEAD by the handler of GET. */
export async function answerHead(
  request: Request,
  handle: (request: Request) => Response | Promise<Response>,
): Promise<Response> {
  const asGet = new Request(request, { method: "GET" });
  HEADS.add(asGet);
  const answer = await handle(asGet);
  await answer.body?.cancel();
  return new Response(null, answer);
}
