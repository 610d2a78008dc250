// Settings in which all nodes must agree, as keyed hashes: a token that one node signs must be valid at every other. A
// node that differs ends with a line that names the variable; one with another schema or protocol waits until the nodes
// before it have ended.

import { createHmac } from "node:crypto";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Features } from "../process/features.ts";
import { ConfigError } from "../process/settings.ts";
import type { NodeRow } from "../storage/nodes/node_store.ts";

/** The version of the protocol between nodes. */
export const PROTOCOL = 2;

/** Characters of a hash: enough to see a difference, too few to test guessed secrets against a copy of the table. */
const HASH_LENGTH = 5;

/**
 * Fingerprints that a later node waits for: it may serve once the earlier nodes have ended. The list of databases is one of
 * them, so that a database can be added without a pause.
 */
const GENERATIONS = ["protocol", "schema", "HOLDFAST_DATABASES"] as const;

/**
 * The fingerprints of a process.
 *
 * @param databases the names of HOLDFAST_DATABASES; null without the setting
 */
export function fingerprintsOf(
  secret: string,
  adminToken: string | null,
  { privacySecret, exportSecret, publicUrl, allowsPrivateWebhooks }: Features,
  databases: string | null = null,
): Record<string, string> {
  const settings = {
    HOLDFAST_DATABASES: databases,
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
 * Compares a new node with the nodes that were there before.
 *
 * @returns whether it may serve now; false while nodes with another schema or protocol live
 * @throws ConfigError that names the first setting that differs
 */
export function agrees(own: Readonly<Record<string, string>>, earlier: readonly NodeRow[]): boolean {
  if (awaitedDifference(own, earlier) !== null) return false;
  const setting = Object.keys(own).find((name) => differs(name, own, earlier));
  if (setting === undefined) return true;
  throw new ConfigError(
    `Cannot start: ${setting} differs from that of the processes that serve this database already`,
  );
}

/** The name of what a new node waits for: in it nodes that live differ from the new one. Null for nothing. */
export function awaitedDifference(
  own: Readonly<Record<string, string>>,
  earlier: readonly NodeRow[],
): string | null {
  return GENERATIONS.find((name) => differs(name, own, earlier)) ?? null;
}

function differs(
  name: string,
  own: Readonly<Record<string, string>>,
  earlier: readonly NodeRow[],
): boolean {
  return earlier.some(({ fingerprints }) => name in fingerprints && fingerprints[name] !== own[name]);
}
