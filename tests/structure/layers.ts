// The layers of the project: what each folder may import beside itself, and where each package has its home. The test
// beside this file also fails for an entry that nothing needs, so the table never promises more than there is.

/** Folders that the rules live in; each lists what it needs of the others, the rest may use all of them. */
const DOMAIN = [
  "src/domain/",
  "src/domain/metering/",
  "src/domain/plans/",
  "src/domain/pricing/",
  "src/domain/credits/",
  "src/domain/merging/",
];

/**
 * What the files of a folder may import beside their own folder. A path that ends in a slash means the files of exactly
 * that folder, any other path means one file.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // Rules: nothing but rules. Nobody but the runtime knows merging.
  "src/domain/": ["src/domain/metering/", "src/domain/plans/", "src/domain/credits/"],
  "src/domain/metering/": [
    "src/domain/",
    "src/domain/plans/",
    "src/domain/pricing/",
    "src/domain/credits/",
  ],
  "src/domain/plans/": ["src/domain/", "src/domain/metering/", "src/domain/pricing/"],
  "src/domain/pricing/": ["src/domain/", "src/domain/plans/"],
  "src/domain/credits/": ["src/domain/", "src/domain/plans/", "src/domain/pricing/"],
  "src/domain/merging/": [
    "src/domain/",
    "src/domain/metering/",
    "src/domain/plans/",
    "src/domain/credits/",
  ],

  // What any process needs.
  "src/process/": ["src/domain/", "src/domain/plans/"],
  "src/secrets/": [],
  "sql/": [],

  // The runtime knows the rules and its own port, not what implements the port.
  "actors/": [
    ...DOMAIN.filter((folder) => !["src/domain/credits/", "src/domain/pricing/"].includes(folder)),
    "src/process/",
    "src/observability/runtime_counts.ts",
    "src/observability/spans.ts",
  ],
  // Carries what others make, and knows none of it.
  "src/channel/": ["actors/port.ts", "src/process/"],
  "src/storage/": ["actors/port.ts", "sql/"],
  "src/storage/embedded/": ["src/process/", "src/storage/"],
  "src/storage/members/": ["actors/port.ts", "src/domain/plans/", "src/process/", "src/storage/"],
  "src/storage/journal/": [
    "src/domain/plans/",
    "actors/port.ts",
    "src/process/",
    "src/storage/",
    "src/storage/members/",
    "src/storage/rows/",
  ],
  "src/storage/rows/": [
    ...DOMAIN.filter((folder) => !["src/domain/merging/", "src/domain/pricing/"].includes(folder)),
    "actors/port.ts",
    "src/storage/",
  ],
  "src/storage/stores/": [
    ...DOMAIN.filter((folder) => folder !== "src/domain/pricing/"),
    "actors/port.ts",
    "src/process/",
    "src/storage/",
    "src/storage/members/",
    "src/storage/rows/",
    "src/tenant/registry.ts",
  ],
  "src/merging/": [
    "src/domain/",
    "src/domain/merging/",
    "actors/",
    "src/housekeeping/",
    "src/privacy/",
    "src/process/",
  ],
  // Who owns what, and the way of a call to its owner. It carries calls and does not read them.
  "src/cluster/": [
    "src/domain/plans/",
    "actors/",
    "sql/",
    "src/channel/",
    "src/observability/cluster_counts.ts",
    "src/process/",
    "src/storage/",
    "src/storage/journal/",
    "src/storage/members/",
    "src/storage/stores/",
    "src/tenant/",
  ],
  "src/service/": [
    "src/domain/",
    "actors/",
    "sql/",
    "src/channel/",
    "src/cluster/",
    "src/observability/",
    "src/process/",
    "src/storage/",
    "src/tenant/rate_buckets.ts",
    "src/tenant/registry.ts",
    "src/tenant/registry_changes.ts",
    "src/storage/journal/",
    "src/storage/members/",
    "src/storage/stores/",
    "src/storage/embedded/",
  ],
  "src/observability/": [
    "src/domain/",
    "src/domain/metering/",
    "src/channel/",
    "src/process/",
    "src/service/",
  ],

  // A tenant: workspaces, apps, keys, catalogs.
  "src/tenant/": [
    "src/domain/",
    "src/domain/plans/",
    "src/domain/pricing/",
    "actors/",
    "src/process/",
    "src/secrets/",
    "src/tenant/catalog/",
    "src/storage/",
    "src/storage/members/",
    "src/storage/stores/",
  ],
  "src/tenant/catalog/": [
    "src/domain/",
    "src/domain/plans/",
    "src/compose/output.ts",
    "src/process/",
    "src/storage/database.ts",
  ],
  "src/tenant/demo/": ["actors/", "src/process/", "src/secrets/", "src/service/", "src/tenant/"],

  // Services and queries beside the actors.
  "src/read/": [
    ...DOMAIN.filter((folder) => !["src/domain/merging/", "src/domain/pricing/"].includes(folder)),
    "src/process/",
    "src/storage/",
    "src/tenant/registry.ts",
    "src/storage/rows/",
  ],
  "src/compose/": [
    ...DOMAIN.filter((folder) => folder !== "src/domain/merging/"),
    "actors/",
    "src/process/",
    "src/read/",
    "src/storage/",
    "src/privacy/",
    "src/storage/stores/",
    "src/storage/members/",
  ],
  "src/privacy/": [
    "src/domain/",
    "src/domain/plans/",
    "actors/",
    "src/process/",
    "src/read/",
    "src/storage/",
    "src/storage/stores/",
    "src/storage/members/",
  ],
  "src/doctor/": [
    "sql/",
    "src/process/",
    "src/read/",
    "src/storage/",
    "src/storage/members/",
    "src/storage/stores/",
    "actors/",
  ],
  "src/housekeeping/": [
    "src/domain/",
    "actors/",
    "src/observability/",
    "src/privacy/",
    "src/process/",
    "src/service/",
    "src/storage/stores/",
    "src/storage/",
    "src/storage/members/",
  ],

  // Programs of their own: they know nothing of the service.
  "src/mcp/": [],
  "src/client/": [],

  // HTTP.
  "routes/": [
    ...DOMAIN,
    "actors/",
    "routes/reference/",
    "routes/schemas/",
    "src/channel/",
    "src/cluster/",
    "src/compose/",
    "src/doctor/",
    "src/housekeeping/",
    "src/mcp/",
    "src/merging/",
    "src/observability/",
    "src/privacy/",
    "src/process/",
    "src/read/",
    "src/secrets/",
    "src/service/",
    "src/tenant/",
  ],
  "routes/schemas/": [
    "src/domain/",
    "src/domain/plans/",
    "src/domain/pricing/",
    "src/process/",
    "src/tenant/catalog/",
  ],
  "routes/reference/": ["src/domain/", "routes/", "routes/schemas/", "src/process/"],

  // What is started: the service, and the command line.
  "src/main.ts": [
    "routes/",
    "src/housekeeping/",
    "src/observability/",
    "src/process/",
    "src/secrets/",
    "src/service/",
    "src/storage/",
    "src/tenant/",
    "src/tenant/demo/",
    "src/storage/embedded/",
  ],
  "src/tasks/": [
    "src/domain/",
    "routes/",
    "routes/reference/",
    "sql/",
    "src/client/",
    "src/doctor/",
    "src/mcp/",
    "src/process/",
    "src/read/",
    "src/service/",
    "src/storage/",
    "src/tenant/",
    "src/tenant/catalog/",
    "src/storage/embedded/",
    "src/operations/package/npm.json",
  ],
};

/** Packages and the only places that may import them. What is not listed is for tests alone. */
export const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  "@electric-sql/pglite": ["src/storage/"],
  "@modelcontextprotocol/server": ["src/mcp/"],
  "@opentelemetry/api": ["src/observability/"],
  ajv: ["src/compose/"],
  commander: ["src/tasks/"],
  hono: ["routes/"],
  openai: ["src/compose/"],
  postgres: ["src/storage/"],
  "prom-client": ["src/observability/"],
  react: ["src/client/react.ts"],
  "npm:typescript@5.9.3": ["src/tasks/client_package.ts"],
  zod: ["routes/", "src/process/settings.ts", "src/tenant/rate_buckets.ts", "src/tenant/catalog/"],
};
