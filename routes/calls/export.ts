// The export of a person: a signed link, and the document that it opens. The link needs no key, so its token is checked as
// strictly as a key.

import { z } from "zod";
import type { Mode } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { type ExportDocument, exportDocument } from "../../src/people/export.ts";
import type { Downloads } from "../../src/process/downloads.ts";
import { DOWNLOAD_LIMITS, PEOPLE_LIMITS } from "../../src/process/limits.ts";
import type { Clock } from "../../src/process/clock.ts";
import type { Features } from "../../src/process/features.ts";
import { openToken, signToken } from "../../src/process/secrets/signed_token.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { type RawAnswer, success } from "../http/answer.ts";
import { endpointsOn, keylessEndpointsOn } from "../http/endpoint.ts";
import type { Endpoint, KeylessEndpoint } from "../http/endpoint_types.ts";
import { downloadExport, exportPerson } from "../contract/export.ts";
import { type ReadingWorld, worldOf } from "../http/app_world.ts";
import { invalidMember, RateLimited, Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";
import { endUserId, timeText } from "../contract/fields.ts";

/** What links need of the running service. */
interface LinkWorld {
  readonly clock: Clock;
  readonly features: Pick<Features, "exportSecret" | "publicUrl">;
}

/** What documents need of the running service. */
type DocumentWorld =
  & LinkWorld
  & Parameters<typeof exportDocument>[0]
  & ReadingWorld
  & {
    readonly registry: Pick<Registry, "apps">;
    readonly term: Pick<Term, "flush">;
    readonly downloads: Downloads;
  };

/** The rights of a token: to download the document of one id until it expires. */
interface ExportGrant {
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly expiresAt: Millis;
}

export const EXPORT: readonly Endpoint<LinkWorld>[] = [
  endpointsOn<LinkWorld>()(exportPerson, ({ world, caller, input, url }) => {
    const { features, clock } = world;
    const secret = requireSecret(features);
    const expiresAt = clock.now() + PEOPLE_LIMITS.exportValidMs;
    const { appId } = caller.app.record;
    const { distinctId } = input;
    const token = signExport(secret, { appId, mode: caller.realm.mode, distinctId, expiresAt });
    const origin = features.publicUrl ?? originOf(url);
    const downloadUrl = `${origin}/api${downloadExport.path}?token=${token}`;
    return success({ downloadUrl, expiresAt: timeText(expiresAt), format: "json" });
  }),
];

/** The origin of the address that a request was sent to. */
function originOf(url: string): string {
  if (!URL.canParse(url)) throw invalidMember("", "The address has no host");
  return new URL(url).origin;
}

/** Signs a grant as a token. */
export function signExport(secret: string, grant: ExportGrant): string {
  const { appId, mode, distinctId, expiresAt } = grant;
  return signToken(secret, { appId, mode, distinctId, expiresAt: timeText(expiresAt) });
}

const PAYLOAD = z.object({
  appId: z.string(),
  mode: z.enum(["live", "test"]),
  distinctId: endUserId.refine((id) => id.isWellFormed() && !id.includes("\0")),
  expiresAt: z.iso.datetime().transform((text) => Date.parse(text)),
});

/** Returns the grant of a token that is valid at a real moment, or null. */
function readExport(secret: string, token: string, nowMs: Millis): ExportGrant | null {
  const opened = openToken(token, [secret]);
  if (opened === null || !opened.isCanonical) return null;
  const grant = PAYLOAD.safeParse(opened.payload);
  return grant.success && grant.data.expiresAt > nowMs ? grant.data : null;
}

/** The download of an export. */
export const DOWNLOADS: readonly KeylessEndpoint<DocumentWorld>[] = [
  keylessEndpointsOn<DocumentWorld>()(downloadExport, async ({ world, input, requestId }) => {
    const { grant, realm } = granted(world, input.token ?? null);
    const owner = { app: grant.appId, person: `${realm.realm}/${grant.distinctId}` };
    const download = world.downloads.take(owner);
    if (download === null) throw new RateLimited(RETRY_AFTER_S, TOO_MANY);
    try {
      await world.term.flush();
      const { promptLogging, promptLogRetentionMs } = realm.catalog;
      const now = realm.now();
      const pieces = exportDocument(worldOf(world, realm.app), {
        ...grant,
        realm,
        exportedAt: now,
        logs: { isOn: promptLogging, keptFrom: now - promptLogRetentionMs },
      });
      const first = await pieces.next();
      const body = download.stream(startingWith(first, pieces));
      const answer: RawAnswer<ExportDocument> = new Response(body, { headers: documentHeaders(requestId) });
      return answer;
    } catch (error) {
      download.end("failed");
      throw error;
    }
  }, {
    misfit: badToken,
    about: ({ world, input }) => grantOf(world, input.token ?? null),
    head: ({ world, input, requestId }) => {
      granted(world, input.token ?? null);
      return new Response(null, { headers: documentHeaders(requestId) });
    },
  }),
];

const RETRY_AFTER_S = DOWNLOAD_LIMITS.readerGoneMs / 1000;
const TOO_MANY = `Too many downloads of this person, or of its app, are open; retry in ${RETRY_AFTER_S} s`;

function documentHeaders(requestId: string): Record<string, string> {
  return {
    ...headersOf(requestId, "application/json; charset=UTF-8"),
    "content-disposition": 'attachment; filename="person-export.json"',
  };
}

/** The pieces of a document whose first piece is made already, so that a fault of it is an answer. */
async function* startingWith(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
  if (first.done !== true) yield first.value;
  yield* rest;
}

/** Returns the grant of a token, or null. */
function grantOf({ features, clock }: LinkWorld, token: string | null): ExportGrant | null {
  const secret = requireSecret(features);
  return token === null ? null : readExport(secret, token, clock.now());
}

/** Returns the grant of a token and its realm; throws on an invalid token. */
function granted(world: LinkWorld & Pick<DocumentWorld, "registry">, token: string | null) {
  const { registry } = world;
  const grant = grantOf(world, token);
  const realm = grant === null ? undefined : registry.apps.get(grant.appId)?.realms[grant.mode];
  if (grant === null || realm === undefined) throw badToken();
  return { grant, realm };
}

function badToken(): Refused {
  return new Refused("invalid_or_expired_token", "The token is missing, invalid or expired");
}

function requireSecret({ exportSecret }: Pick<Features, "exportSecret">): string {
  if (exportSecret !== null) return exportSecret;
  throw new Refused("not_implemented", "ANALYTICS_EXPORT_SECRET is not set");
}
