// The parts of the OpenAPI document that its calls share: introduction, security schemes, common parameters and headers,
// and the shape of errors.

import { REFUSAL_CODES, type RefusalCode } from "../../src/domain/values/refusal.ts";
import type { Access, CallDefinition } from "../contract/definition.ts";
import { STATUS } from "../http/errors.ts";
import { MEANING } from "./errors.ts";
import type { JsonSchema } from "./json_schema.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const DESCRIPTION =
  `Metering and entitlements for products that resell AI: reserve quota before the work, settle it afterwards.

**Answers.** Every JSON answer is \`{ "ok": true, "data": ... }\` with status 200, or
\`{ "ok": false, "error": { "code", "message", "details"? } }\` with the status of its code. A reserve that meets a
limit is not an error: its answer has \`allowed: false\`. New members may be added to answers. Unknown members
of metering calls are \`warnings\` of the answer, and common mistakes such as \`max_tokens\` are \`invalid_request\`; other
calls ignore unknown members. \`null\` for an optional member means the same as leaving it out, unless documented otherwise.

**Keys.** \`sk_live_\` and \`sk_test_\` keys are secret: use them only on your server. \`pk_live_\` and \`pk_test_\` keys are
public. With a public key, usage and credits require \`X-End-User-Token\`. \`uk_live_\` and \`uk_test_\` keys act for one
user: at the gateway, and for its own usage. \`rk_live_\` and \`rk_test_\` keys only read, for agents and dashboards: every
GET, can-use and explain, without texts of prompts and responses. Live and test mode share only the catalog.

**Retries.** Send \`Idempotency-Key\` with a POST or DELETE under \`/api/v1\`. A retry with the same key within 24 hours
gets the first answer again, with \`Idempotent-Replayed: true\`.

**Amounts** have six exact decimal places. **Times** are ISO 8601 in UTC.

**Errors**

| code | status | meaning |
| --- | --- | --- |
${REFUSAL_CODES.map((code) => `| \`${code}\` | ${STATUS[code]} | ${MEANING[code]} |`).join("\n")}

An unknown path is \`not_found\`, a known path with another method \`method_not_allowed\`.

**Agents** read events, usage, features and refusals, and explain calls, through the Model Context Protocol at
\`POST /mcp\`, with a secret or read-only key.`;

/** The `info` of the document. */
export const INFO: JsonSchema = {
  title: "Holdfast",
  version: "1",
  summary: "Metering and entitlements for products that resell AI",
  description: DESCRIPTION,
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

/** Security schemes: the classes of API keys, and the admin token. */
export const SECURITY_SCHEMES = {
  secretKey: { type: "http", scheme: "bearer", description: "A secret key: sk_live_... or sk_test_..." },
  testSecretKey: { type: "http", scheme: "bearer", description: "A secret key of test mode: sk_test_..." },
  userKey: {
    type: "http",
    scheme: "bearer",
    description: "A user's key: uk_live_... or uk_test_...; acts for this user alone",
  },
  publicKey: { type: "http", scheme: "bearer", description: "A public key: pk_live_... or pk_test_..." },
  endUserToken: {
    type: "apiKey",
    in: "header",
    name: "X-End-User-Token",
    description:
      'base64url(JSON {"userId","exp","mode"}) "." base64url(HMAC-SHA-256 of the first part), with the ' +
      "app's identity secret; exp is in Unix seconds, at most 400 days ahead; mode is optional, live or test, and must be " +
      "that of the key",
  },
  adminToken: { type: "http", scheme: "bearer", description: "HOLDFAST_ADMIN_TOKEN" },
} as const;

type Requirement = { readonly [Scheme in keyof typeof SECURITY_SCHEMES]?: readonly string[] };

/** Security requirements by access: alternatives of schemes. */
const SECURITY: Readonly<Record<Access | "admin" | "open", readonly Requirement[]>> = {
  secret: [{ secretKey: [] }],
  credit_write: [{ secretKey: [] }],
  hidden: [{ secretKey: [] }],
  any: [{ secretKey: [] }, { publicKey: [] }],
  any_user: [{ secretKey: [] }, { publicKey: [] }, { publicKey: [], endUserToken: [] }],
  end_user: [{ secretKey: [] }, { publicKey: [], endUserToken: [] }],
  token: [{ secretKey: [], endUserToken: [] }, { publicKey: [], endUserToken: [] }],
  test_secret: [{ testSecretKey: [] }],
  admin: [{ adminToken: [] }],
  open: [],
};

/** The security requirements of a call. */
export function securityOf(
  { access, takesUserKey }: Pick<CallDefinition, "access" | "takesUserKey">,
): readonly Requirement[] {
  return takesUserKey === true ? [...SECURITY[access], { userKey: [] }] : SECURITY[access];
}

/** Header parameters that several calls take. */
export const PARAMETERS = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description: "A retry with the same key, path and body within 24 hours gets the first answer again",
    schema: { type: "string", minLength: 1, maxLength: REQUEST_LIMITS.idempotencyKeyLengthMax },
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    required: false,
    description: "Your id for this request; it is returned, and is in the logs",
    schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,100}$" },
  },
} as const;

/** Headers of answers. */
export const HEADERS = {
  RequestId: { description: "The id of the request in the logs", schema: { type: "string" } },
  IdempotentReplayed: {
    description: "Present if this is the first answer to the Idempotency-Key, again",
    schema: { type: "string", const: "true" },
  },
  IdempotencyKeyPrefix: {
    description:
      "What the keys of new calls may begin with, followed by a random text: the service then knows without a " +
      "query that a key is new. Present if the key was looked up; every other key is as good",
    schema: { type: "string" },
  },
  RetryAfter: { description: "Seconds, an integer", schema: { type: "integer", minimum: 1 } },
} as const;

/** The envelope of errors with one of these codes. */
export function errorSchema(codes: readonly RefusalCode[]): JsonSchema {
  return {
    type: "object",
    properties: {
      ok: { type: "boolean", const: false },
      error: {
        type: "object",
        properties: {
          code: { type: "string", enum: codes },
          message: { type: "string", description: "What is wrong, with the name of the member" },
          details: { description: "More about the error, for some codes" },
        },
        required: ["code", "message"],
      },
    },
    required: ["ok", "error"],
  };
}

/** The envelope of every error. */
export const ERROR: JsonSchema = errorSchema(REFUSAL_CODES);

/** A reference to a component. */
export function refTo(kind: "schemas" | "parameters" | "headers", name: string): JsonSchema {
  return { $ref: `#/components/${kind}/${name}` };
}
