// The messages that webhooks are sent, as the `webhooks` of an OpenAPI document: each type with its body, the headers
// that come with it, and what its receiver's answer means.

import { MESSAGE_TYPES } from "../../src/domain/state/message.ts";
import { messageBody, MESSAGES } from "../contract/webhook_messages.ts";
import { type JsonSchema, recordName, type SchemaWriter } from "./json_schema.ts";

const HEADERS: readonly (readonly [name: string, description: string])[] = [
  ["webhook-id", "The message's id, the same at every attempt: drop what you have handled before"],
  ["webhook-timestamp", "Unix seconds of this attempt"],
  [
    "webhook-signature",
    "One or more signatures with a space between them, each `v1,` and the base64 HMAC-SHA-256 of " +
    "`id.timestamp.body` under the bytes of the secret behind `whsec_`",
  ],
];

const RESPONSES = {
  "2XX": { description: "Within 15 seconds: the message is delivered" },
  410: { description: "Sends nothing more: the webhook is disabled" },
  default: {
    description:
      "Anything else, a redirect too: attempted again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, and " +
      "then given up. Later messages of the same user wait for it.",
  },
};

/** An item for each type of message. */
export function messageItems(writer: SchemaWriter): Record<string, JsonSchema> {
  return Object.fromEntries(MESSAGE_TYPES.map((type) => [type, {
    post: {
      tags: ["Webhooks"],
      // What a page lists them by.
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
