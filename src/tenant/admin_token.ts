// The admin token of a process: that of the settings, or one that the embedded store keeps for itself. On a server the
// admin API is off without a setting.

import type { Config } from "../process/settings.ts";
import { readSecret } from "../process/secrets/data_folder.ts";

/** The file of the data folder that keeps the token. */
export const ADMIN_TOKEN_FILE = "admin-token";

/** The token, or null where the admin API is off. */
export async function adminTokenOf({ adminToken, databaseUrl, dataDir }: Config): Promise<string | null> {
  if (adminToken !== null || databaseUrl !== null) return adminToken;
  return await readSecret(dataDir, ADMIN_TOKEN_FILE);
}
