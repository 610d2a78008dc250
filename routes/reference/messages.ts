// The messages of webhook endpoints, as the `webhooks` of the OpenAPI document: body, headers, and the meaning of the
// receiver's answer.

import { MESSAGE_TYPES } from "../../src/domain/state/message.ts";
import { messageBody, MESSAGES } from "../contract/webhook_messages.ts";
import { type JsonSchema, recordName, type SchemaWriter } from "./json_schema.ts";

const HEADERS: readonly (readonly [name: string, description: string])[] = [
  ["webhook-id", "The id of the message, the same at every attempt: ignore a message that you have handled"],
  ["webhook-timestamp", "Unix seconds of this attempt"],
  [
    "webhook-signature",
    "One or more signatures separated by spaces, each `v1,` and the base64 HMAC-SHA-256 of " +
    "`id.timestamp.body` with the bytes of the secret after `whsec_`",
  ],
];

const RESPONSES = {
  "2XX": { description: "Within 15 seconds: the message is delivered" },
  410: { description: "Disables the endpoint: it receives no more messages" },
  default: {
    description:
      "Any other answer, also a redirect: attempted again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h; " +
      "then the message has failed. Later messages of the same user wait for it.",
  },
};

/** The `webhooks` object: an item for each message type. */
export function messageItems(writer: SchemaWriter): Record<string, JsonSchema> {
  return Object.fromEntries(MESSAGE_TYPES.map((type) => [type, {
    post: {
      operationId: `on${recordName(type)}`,
      tags: ["Webhooks"],
      // Pages list the items by their summaries.
      summary: type,
      description: MESSAGES[type].meaning,
      parameters: HEADERS.map(([name, description]) => ({
        name,
        in: "header",
        required: true,
        description,
        schema: { type: "string" },
      })),
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: writer.named(`${recordName(type)}Message`, writer.write(messageBody(type))),
          },
        },
      },
      responses: RESPONSES,
      security: [],
    },
  }]));
}
