// Keys of users.

import type { EndUserKey } from "../../domain/state/end_user_key.ts";
import { column, table } from "./columns.ts";

export const END_USER_KEYS = table<EndUserKey>("end_user_keys", 1, {
  id: column("id"),
  userKey: column("user_key", { mutable: true }),
  name: column("name", { mutable: true }),
  prefix: column("prefix"),
  hash: column("hash", { mutable: true }),
  createdAt: column("created_at_ms"),
  expiresAt: column("expires_at_ms"),
  lastUsedAt: column("last_used_at_ms", { mutable: true }),
  revokedAt: column("revoked_at_ms", { mutable: true }),
});
