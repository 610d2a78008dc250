// The export of a person: a signed link, and the document that it opens. The link is the authorisation, so its token is
// read as strictly as a key. Specification, "POST /v1/export-person"; section 9 of the decisions.

import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import type { Context } from "hono";
import { z } from "zod";
import type { Mode } from "../actors/port.ts";
import type { Millis } from "../src/domain/plans/period.ts";
import { exportDocument } from "../src/privacy/export.ts";
import { PEOPLE_LIMITS } from "../src/process/limits.ts";
import { equalsSecret } from "../src/secrets/hash.ts";
import type { Service, Serving } from "../src/service/service.ts";
import { Refused } from "./errors.ts";
import { type Endpoint, endpoint, success } from "./endpoint.ts";
import type { EndpointDoc } from "./reference/doc.ts";
import { headersOf, requestId } from "./respond.ts";
import { exportDocumentAnswer, exportPersonAnswer } from "./schemas/answers.ts";
import { endUserId, timeText } from "./schemas/fields.ts";
import type { RouteWatch } from "./watch.ts";

/** What a token allows: the document of one id, for a while. */
export interface ExportGrant {
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly expiresAt: Millis;
}

/** Answers without a key, so it is no operation: `routes/app.ts` mounts it. */
export const DOWNLOAD_PATH = "/v1/export-download";

/** What the reference says of the download. */
export const DOWNLOAD_DOC: EndpointDoc = {
  id: "downloadExport",
  tag: "Privacy",
  summary: "The export document of a person",
  description: "The token of the link is the authorisation. The document is made while it is sent.",
  answer: exportDocumentAnswer,
  errors: ["unavailable", "invalid_or_expired_token", "not_implemented", "internal_error"],
};

/** `POST /v1/export-person`: a link to the document of a person. */
const exportPerson = endpoint({
  method: "POST",
  path: "/v1/export-person",
  access: "secret",
  input: z.object({ distinctId: endUserId }),
  answersToken: true,
  doc: {
    id: "exportPerson",
    tag: "Privacy",
    summary: "A link to everything of a person",
    description: "The link works for 24 hours and needs no key.",
    answer: exportPersonAnswer,
    errors: ["not_implemented"],
  },
  handle: ({ serving, caller, input, url }) => {
    const { features, clock } = serving;
    const secret = requireSecret(serving);
    const expiresAt = clock.now() + PEOPLE_LIMITS.exportValidMs;
    const { appId } = caller.app.record;
    const { distinctId } = input;
    const token = signExport(secret, { appId, mode: caller.realm.mode, distinctId, expiresAt });
    const origin = features.publicUrl ?? originOf(url);
    const downloadUrl = `${origin}/api${DOWNLOAD_PATH}?token=${token}`;
    return Promise.resolve(success({ downloadUrl, expiresAt: timeText(expiresAt), format: "json" }));
  },
});

export const EXPORT: readonly Endpoint<unknown>[] = [exportPerson];

/** The origin that a request was sent to; an address in full may name one that is none. */
function originOf(url: string): string {
  if (!URL.canParse(url)) throw new Refused("invalid_request", "The address names no host");
  return new URL(url).origin;
}

/** The token of a grant: base64url(JSON) "." base64url(HMAC-SHA-256 of the first part). */
export function signExport(secret: string, grant: ExportGrant): string {
  const { appId, mode, distinctId, expiresAt } = grant;
  const payload = JSON.stringify({ appId, mode, distinctId, expiresAt: timeText(expiresAt) });
  const first = Buffer.from(payload).toString("base64url");
  return `${first}.${signatureOf(secret, first)}`;
}

const PAYLOAD = z.object({
  appId: z.string(),
  mode: z.enum(["live", "test"]),
  distinctId: endUserId.refine((id) => id.isWellFormed() && !id.includes("\0")),
  expiresAt: z.iso.datetime().transform((text) => Date.parse(text)),
});

/** The grant of a token that is valid at a real moment, or null. */
export function readExport(secret: string, token: string, nowMs: Millis): ExportGrant | null {
  const [first, signature, ...rest] = token.split(".");
  if (first === undefined || signature === undefined || rest.length > 0) return null;
  // The signature is of the text and compared as text: the same bytes in another encoding are another token.
  if (!equalsSecret(signature, signatureOf(secret, first))) return null;
  const bytes = Buffer.from(first, "base64url");
  if (bytes.toString("base64url") !== first) return null;
  try {
    const grant = PAYLOAD.safeParse(JSON.parse(bytes.toString()));
    return grant.success && grant.data.expiresAt > nowMs ? grant.data : null;
  } catch {
    return null;
  }
}

function signatureOf(secret: string, first: string): string {
  return createHmac("sha256", secret).update(first).digest("base64url");
}

/** `GET /v1/export-download`: the document, made while it is sent. */
export async function exportDownload(
  { req }: Context,
  service: Service,
  watch: RouteWatch,
): Promise<Response> {
  const request = req.raw;
  const startedAt = watch.starts();
  try {
    const serving = service.requireServing();
    const { grant, realm } = granted(request, serving);
    await serving.term.flush();
    const { promptLogging, promptLogRetentionMs } = realm.catalog;
    const now = realm.now();
    const pieces = exportDocument(serving, {
      ...grant,
      realm,
      exportedAt: now,
      logs: { isOn: promptLogging, keptFrom: now - promptLogRetentionMs },
    });
    const first = await pieces.next();
    const headers = {
      ...headersOf(requestId(request), "application/json; charset=UTF-8"),
      "content-disposition": 'attachment; filename="person-export.json"',
    };
    return watch.ended(startedAt, "ok", new Response(streamOf(first, pieces), { headers }));
  } catch (error) {
    return watch.threw(startedAt, request, error);
  }
}

/** What the request's token grants. Every bad token answers the same. */
function granted(request: Request, serving: Serving) {
  const secret = requireSecret(serving);
  const token = new URLSearchParams(request.url.split("?", 2)[1] ?? "").get("token");
  const grant = token === null ? null : readExport(secret, token, serving.clock.now());
  const realm = grant === null ? undefined : serving.registry.apps.get(grant.appId)?.realms[grant.mode];
  if (grant === null || realm === undefined) {
    throw new Refused("invalid_or_expired_token", "The token is missing, invalid or expired");
  }
  return { grant, realm };
}

function requireSecret({ features }: Serving): string {
  if (features.exportSecret !== null) return features.exportSecret;
  throw new Refused("not_implemented", "ANALYTICS_EXPORT_SECRET is not set");
}

/** Pieces as they are asked for: the next one is made when the reader has taken the last. */
function streamOf(first: IteratorResult<string>, rest: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<string>> | null = Promise.resolve(first);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await (next ?? rest.next());
      next = null;
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await rest.return(undefined);
    },
  }, { highWaterMark: 0 });
}
