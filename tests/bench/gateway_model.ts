// A model server that answers at once, a process of its own: the streams of the tests' model server, on connections that
// are kept. A call of the model "silent" gets its first event and no other.
import { Hono } from "hono";
import { chatEvents, SAMPLE } from "../support/model_server.ts";
import { serveBaseline } from "./contestant.ts";

/** The model that says one thing and stays. */
export const SILENT = "silent";

const HEADERS = { "content-type": "text/event-stream" };
const encoder = new TextEncoder();

if (import.meta.main) {
  const app = new Hono();
  app.post("/v1/chat/completions", async (context) => {
    const body = await context.req.json();
    const events = chatEvents(body, SAMPLE)[Symbol.iterator]();
    const isSilent = body.model === SILENT;
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (isSilent && sent > 0) return new Promise(() => {});
        const { done, value } = events.next();
        if (done) return controller.close();
        sent += 1;
        controller.enqueue(encoder.encode(value));
      },
    }, { highWaterMark: 0 });
    return new Response(stream, { headers: HEADERS });
  });
  await serveBaseline(app);
}
