// Settings in which all members must agree, as keyed hashes: a token that one member signed has to hold at every other.
// A newcomer that differs ends with a line that names the variable; one of another schema or protocol waits until the
// members of that kind have gone (rule 19 of the cluster's design).

import { createHmac } from "node:crypto";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Features } from "../process/features.ts";
import { ConfigError } from "../process/settings.ts";
import type { MemberRow } from "../storage/members/member_store.ts";

/** The version of what members say to each other. */
export const PROTOCOL = 2;

/** Few bits: enough to see a difference, too few to try secrets against a copy of the table. */
const HASH_LENGTH = 5;

/** What must be the same in a process that comes later, and waits for the earlier ones to go. */
const GENERATIONS = ["protocol", "schema"] as const;

/** The fingerprints of a process. */
export function fingerprintsOf(
  secret: string,
  adminToken: string | null,
  { privacySecret, exportSecret, publicUrl, allowsPrivateWebhooks }: Features,
): Record<string, string> {
  const settings = {
    HOLDFAST_ADMIN_TOKEN: adminToken,
    HOLDFAST_PRIVACY_SECRET: privacySecret,
    ANALYTICS_EXPORT_SECRET: exportSecret,
    HOLDFAST_PUBLIC_URL: publicUrl,
    HOLDFAST_WEBHOOKS_ALLOW_PRIVATE: allowsPrivateWebhooks ? "true" : null,
  };
  const hashed = Object.entries(settings).map(([name, value]) => [name, hashOf(secret, name, value)]);
  return {
    ...Object.fromEntries(hashed),
    protocol: String(PROTOCOL),
    schema: MIGRATIONS.at(-1)?.name ?? "",
  };
}

function hashOf(secret: string, name: string, value: string | null): string {
  if (value === null) return "unset";
  return createHmac("sha256", secret).update(`${name}\n${value}`).digest("base64url").slice(0, HASH_LENGTH);
}

/**
 * Compares a newcomer with the members that were there before.
 *
 * @returns whether it may serve now; false while members of another schema or protocol live
 * @throws ConfigError that names the first setting in which it differs
 */
export function agrees(own: Readonly<Record<string, string>>, earlier: readonly MemberRow[]): boolean {
  const differs = (name: string) =>
    earlier.some(({ fingerprints }) => name in fingerprints && fingerprints[name] !== own[name]);
  if (GENERATIONS.some(differs)) return false;
  const setting = Object.keys(own).find(differs);
  if (setting === undefined) return true;
  throw new ConfigError(
    `Cannot start: ${setting} differs from that of the processes that serve this database already`,
  );
}
