// The layers of the project, as the picture in src/README.md draws them, and the one home of each package.

import { textOf } from "./sources.ts";

/** The rank of each folder: a file may import its own folder and folders of a smaller rank. */
export async function readLayers(): Promise<ReadonlyMap<string, number>> {
  const picture = /```layers\n([^`]+)```/.exec(await textOf("src/README.md"))?.[1] ?? "";
  const lines = picture.trim().split("\n").reverse();
  return new Map(lines.flatMap((line, rank) => line.split(" ").map((folder) => [`${folder}/`, rank])));
}

/** Folders that must not know another, although it lies below them. */
export const STRANGERS: Readonly<Record<string, readonly string[]>> = {
  // Pages read and write through the calls of the API.
  "routes/console/": ["src/storage/", "sql/"],
  // Programs of their own: they know the service by its HTTP interface.
  "src/client/": ["src/", "routes/", "actors/", "sql/"],
  // The runtime knows what it asks of a store, not what implements it.
  "actors/": ["sql/"],
};

/** Packages and the only places that may import them. What is not listed is for tests alone. */
export const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  "@electric-sql/pglite": ["src/storage/"],
  "@modelcontextprotocol/server": ["routes/mcp/"],
  "@opentelemetry/api": ["src/process/counts/", "src/operations/metrics/"],
  ajv: ["src/process/json_schema.ts"],
  commander: ["src/cli/"],
  hono: ["routes/"],
  "ipaddr.js": ["src/process/address.ts"],
  openai: ["src/integrations/compose/"],
  postgres: ["src/storage/"],
  "prom-client": ["src/process/counts/", "src/operations/metrics/"],
  standardwebhooks: ["src/webhooks/"],
  stripe: ["src/integrations/stripe/"],
  "npm:hono@4.13.19": ["src/client/hono.ts"],
  "npm:react@19.3.1": ["src/client/react.ts"],
  "npm:typescript@5.9.3": ["src/cli/client_package.ts"],
  zod: ["routes/", "src/process/settings.ts", "src/tenant/rate_buckets.ts", "src/tenant/catalog/"],
};
