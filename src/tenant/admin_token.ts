// The admin token of a process: from the settings, or generated and stored by the embedded store. With a PostgreSQL
// server the admin API is off without the setting.

import type { Config } from "../process/settings.ts";
import { readSecret } from "../process/secrets/data_folder.ts";

/** The file of the data folder that keeps the token. */
export const ADMIN_TOKEN_FILE = "admin-token";

/** The token, or null where the admin API is off. */
export async function adminTokenOf({ adminToken, databases, dataDir }: Config): Promise<string | null> {
  if (adminToken !== null || databases.length > 0) return adminToken;
  return await readSecret(dataDir, ADMIN_TOKEN_FILE);
}
