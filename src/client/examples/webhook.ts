// A receiver of webhooks: it accepts only messages that the service signed, each once.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { text } from "node:stream/consumers";
import { HoldfastError, verifyWebhook, type WebhookMessage } from "holdfast-client";

const { HOLDFAST_WEBHOOK_SECRET = "", PORT = "3000" } = process.env;

/** The ids of messages that were handled; keep them where your app keeps its data. */
const handled = new Set<unknown>();

/** Handles a request. Returns the status; the service sends a message again unless the status is 2xx. */
async function receive(request: IncomingMessage): Promise<number> {
  const { headers } = request;
  try {
    const message = await verifyWebhook({
      secret: HOLDFAST_WEBHOOK_SECRET,
      headers,
      body: await text(request),
    });
    const id = headers["webhook-id"];
    if (!handled.has(id)) handle(message);
    handled.add(id);
    return 204;
  } catch (error) {
    console.log(String(error));
    return error instanceof HoldfastError ? 400 : 500;
  }
}

/** Your work. Do long work after the answer. */
function handle(message: WebhookMessage): void {
  if (message.type !== "usage.threshold_reached") return;
  const { userId, label, thresholdPercent } = message.data;
  console.log(`${userId} has used ${thresholdPercent} % of ${label}`);
}

const server = createServer((request, response) => {
  receive(request).then((status) => response.writeHead(status).end());
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once("SIGTERM", () => server.close());
