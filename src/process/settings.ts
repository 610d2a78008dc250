// Settings from the environment, checked before anything starts. An empty variable counts as unset. An invalid one, and an
// unknown one with the prefix HOLDFAST_, stops the start with one line that names it.

import { z } from "zod";
import { type Features, type ModelServer, SERVER_KINDS, type Upstream } from "./features.ts";
import { GATEWAY_LIMITS } from "./gateway_limits.ts";
import { LOG_LEVELS, type LogLevel } from "./log.ts";
import { type NamedDatabase, readDatabases } from "./database_list.ts";
import { readServerAddress } from "./server_address.ts";
import { readStripeKeys } from "./stripe_keys.ts";
import { nearestName } from "./nearest.ts";
import {
  AGENT_GRANTS_DEFAULT,
  type OperatorToken,
  readOperators,
  SECRET_LENGTH_MIN,
  shareToken,
} from "./operators.ts";

/** An invalid setting; the message is the one line that the operator sees. */
export class ConfigError extends Error {}

/** The settings of a process. */
export interface Config {
  readonly port: number;
  readonly host: string;
  /** The databases of the service: one without a name, or several with names. None: the embedded store. */
  readonly databases: readonly NamedDatabase[];
  readonly dataDir: string;
  readonly adminToken: string | null;
  /** The address of admin API, console and metrics; null where they are at that of everything else. */
  readonly adminListen: { readonly host: string; readonly port: number } | null;
  readonly features: Features;
  readonly logLevel: LogLevel;
  /** Whether Deno may export metrics of its own, where tracing is on. */
  readonly exportsDenoMetrics: boolean;
  /** Where other processes on the same database reach this one, "host:port"; null to choose one. */
  readonly clusterAddress: string | null;
  /** Whether other processes of this machine listen on the same port. */
  readonly sharesPort: boolean;
  /** Whether this process takes no cells, and only passes calls on to their owners. */
  readonly isFront: boolean;
  readonly console: ConsoleConfig;
}

/** The settings of the console. */
interface ConsoleConfig {
  readonly isOn: boolean;
  /** The people who may sign in beside the holder of the admin token. */
  readonly operators: readonly OperatorToken[];
  readonly supportSeesPrompts: boolean;
  /** Units of credits that a person of the role agent may grant in a UTC day. */
  readonly agentGrants: number;
}

const secret = z.string().min(SECRET_LENGTH_MIN, `must have at least ${SECRET_LENGTH_MIN} characters`);

const ADDRESS_FORM =
  "must be host:port as other processes reach it, such as 10.0.0.5:7000 (a port of 0: a free one)";

const environment = z.object({
  PORT: z.string().regex(/^\d+$/, "must be a port number from 0 to 65535").transform(Number)
    .refine((port) => port <= 65_535, "must be a port number from 0 to 65535").default(8000),
  HOLDFAST_HOST: z.string().default("127.0.0.1"),
  DATABASE_URL: z.string().superRefine((text, context) => {
    const read = readServerAddress(text);
    if (typeof read === "string") context.addIssue({ code: "custom", message: read });
  }).optional(),
  HOLDFAST_DATABASES: z.string().transform((text, context) => {
    const read = readDatabases(text, (url) => {
      const read = readServerAddress(url);
      return typeof read === "string" ? read : null;
    });
    if (typeof read !== "string") return read;
    context.addIssue({ code: "custom", message: read });
    return z.NEVER;
  }).optional(),
  HOLDFAST_DATA_DIR: z.string().default(".holdfast"),
  HOLDFAST_ADMIN_TOKEN: secret.optional(),
  HOLDFAST_ADMIN_LISTEN: z.string().transform((text, context) => {
    const address = readAddress(text);
    if (address !== null) return address;
    context.addIssue({ code: "custom", message: "must be host:port, such as 127.0.0.1:8001 or [::1]:8001" });
    return z.NEVER;
  }).optional(),
  HOLDFAST_PRIVACY_SECRET: secret.optional(),
  ANALYTICS_EXPORT_SECRET: secret.optional(),
  HOLDFAST_PUBLIC_URL: z.string().refine(
    isWebOrigin,
    "must be an origin such as https://metering.example.com",
  )
    .transform((text) => new URL(text).origin).optional(),
  HOLDFAST_LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`).default("info"),
  OTEL_DENO_METRICS: z.string().optional(),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_BASE_URL: z.string().refine(isWebUrl, "must be a URL such as https://models.example.com/v1")
    .optional(),
  ANTHROPIC_API_KEY: z.string().optional(),
  ANTHROPIC_BASE_URL: z.string().refine(isWebUrl, "must be a URL such as https://models.example.com")
    .optional(),
  HOLDFAST_UPSTREAMS: z.string().transform((text, context) => {
    const read = readUpstreams(text);
    if (typeof read !== "string") return read;
    context.addIssue({ code: "custom", message: read });
    return z.NEVER;
  }).optional(),
  HOLDFAST_GATEWAY_READ_ON_SECONDS: z.string().regex(
    /^([0-9]|[1-5][0-9]|60)$/,
    "must be a number from 0 to 60",
  )
    .transform(Number).optional(),
  HOLDFAST_CLUSTER_ADDRESS: z.string().refine(isReachableAddress, ADDRESS_FORM).optional(),
  HOLDFAST_SHARE_PORT: z.enum(["true", "false"], "must be true or false").default("false"),
  HOLDFAST_WEBHOOKS_ALLOW_PRIVATE: z.enum(["true", "false"], "must be true or false").default("false"),
  HOLDFAST_CELLS: z.literal("none", "must be none, or unset to take a share of the cells").optional(),
  HOLDFAST_CONSOLE: z.enum(["on", "off"], "must be on or off").default("on"),
  HOLDFAST_SUPPORT_TOKEN: secret.optional(),
  HOLDFAST_CONSOLE_TOKENS: z.string().transform((text, context) => {
    const read = readOperators(text);
    if (typeof read !== "string") return read;
    context.addIssue({ code: "custom", message: read });
    return z.NEVER;
  }).optional(),
  HOLDFAST_SUPPORT_SEES_PROMPTS: z.enum(["true", "false"], "must be true or false").default("false"),
  HOLDFAST_AGENT_GRANTS: z.string().regex(
    /^\d{1,12}(\.\d{1,6})?$/,
    "must be a number of units, such as 100",
  )
    .transform(Number).default(AGENT_GRANTS_DEFAULT),
}).refine(
  ({ DATABASE_URL, HOLDFAST_DATABASES }) => DATABASE_URL === undefined || HOLDFAST_DATABASES === undefined,
  {
    path: ["HOLDFAST_DATABASES"],
    message: "stands beside DATABASE_URL: set one of the two",
  },
).refine(
  ({ HOLDFAST_CELLS, DATABASE_URL, HOLDFAST_DATABASES }) =>
    HOLDFAST_CELLS === undefined || (DATABASE_URL ?? HOLDFAST_DATABASES) !== undefined,
  {
    path: ["HOLDFAST_CELLS"],
    message: "needs DATABASE_URL: the embedded store has one process, which must take every cell",
  },
);

/** Every variable that a setting is read from. */
export const SETTING_NAMES: readonly string[] = Object.keys(environment.shape);

const OUR_PREFIX = "HOLDFAST_";
/** Variables of tasks, tests and the client's examples, which may be set when the service starts. */
const OTHER_NAMES = [
  "HOLDFAST_TEST_FRONT",
  "HOLDFAST_KEY",
  "HOLDFAST_URL",
  "HOLDFAST_TEST_DATABASE_URL",
  "HOLDFAST_CRASH_ROUNDS",
  "HOLDFAST_LONG",
  "HOLDFAST_USER",
  "HOLDFAST_PUBLIC_KEY",
  "HOLDFAST_IDENTITY_SECRET",
  "HOLDFAST_WEBHOOK_SECRET",
];

/**
 * Refuses unknown variables with our prefix: a typing error would otherwise silently leave the default in force.
 *
 * @throws ConfigError that names the nearest known variable
 */
export function refuseUnknown(variables: Readonly<Record<string, string>>): void {
  const known = [...SETTING_NAMES, ...OTHER_NAMES];
  for (const [name, value] of Object.entries(variables)) {
    if (!name.startsWith(OUR_PREFIX) || value === "" || known.includes(name)) continue;
    // The prefix is left out, so that HOLDFAST_PORT finds PORT.
    const bare = (text: string) => text.replace(OUR_PREFIX, "");
    const near = nearestName(bare(name), known.map(bare));
    const meant = known.find((candidate) => bare(candidate) === near);
    throw new ConfigError(`Cannot start: ${name} is not a setting; did you mean ${meant}?`);
  }
}

/** Reads the settings from variables. */
export function readConfig(variables: Readonly<Record<string, string | undefined>>): Config {
  const set = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ""));
  const parsed = environment.safeParse(set);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ConfigError(`Cannot start: ${String(issue?.path[0])} ${issue?.message}`);
  }
  const values = parsed.data;
  const readOn = values.HOLDFAST_GATEWAY_READ_ON_SECONDS;
  const readOnMs = readOn === undefined ? GATEWAY_LIMITS.readOnMs : readOn * 1000;
  const serverOf = (apiKey: string | undefined, baseUrl: string | undefined): ModelServer | null =>
    apiKey === undefined ? null : { apiKey, baseUrl: baseUrl ?? null, readOnMs };
  const operators = operatorsOf(values.HOLDFAST_SUPPORT_TOKEN, values.HOLDFAST_CONSOLE_TOKENS);
  refuseSharedTokens(operators, values.HOLDFAST_ADMIN_TOKEN ?? null);
  return {
    port: values.PORT,
    host: values.HOLDFAST_HOST,
    databases: values.DATABASE_URL === undefined
      ? values.HOLDFAST_DATABASES ?? []
      : [{ name: null, url: values.DATABASE_URL }],
    dataDir: values.HOLDFAST_DATA_DIR,
    adminToken: values.HOLDFAST_ADMIN_TOKEN ?? null,
    adminListen: values.HOLDFAST_ADMIN_LISTEN ?? null,
    logLevel: values.HOLDFAST_LOG_LEVEL,
    exportsDenoMetrics: values.OTEL_DENO_METRICS !== "false",
    clusterAddress: values.HOLDFAST_CLUSTER_ADDRESS ?? null,
    sharesPort: values.HOLDFAST_SHARE_PORT === "true",
    isFront: values.HOLDFAST_CELLS === "none",
    console: {
      isOn: values.HOLDFAST_CONSOLE === "on",
      operators,
      supportSeesPrompts: values.HOLDFAST_SUPPORT_SEES_PROMPTS === "true",
      agentGrants: values.HOLDFAST_AGENT_GRANTS,
    },
    features: {
      privacySecret: values.HOLDFAST_PRIVACY_SECRET ?? null,
      exportSecret: values.ANALYTICS_EXPORT_SECRET ?? null,
      publicUrl: values.HOLDFAST_PUBLIC_URL ?? null,
      modelServer: serverOf(values.OPENAI_API_KEY, values.OPENAI_BASE_URL),
      anthropicServer: serverOf(values.ANTHROPIC_API_KEY, values.ANTHROPIC_BASE_URL),
      upstreams: (values.HOLDFAST_UPSTREAMS ?? []).map(({ name, kind, baseUrl, keyVariable }): Upstream => (
        { name, kind, keyVariable, server: serverOf(set[keyVariable], baseUrl) }
      )),
      stripe: readStripeKeys(variables, (name, message) => {
        throw new ConfigError(`Cannot start: ${name} ${message}`);
      }),
      allowsPrivateWebhooks: values.HOLDFAST_WEBHOOKS_ALLOW_PRIVATE === "true",
    },
  };
}

const UPSTREAM_FORM = 'must be a JSON list of servers, each as {"name":"eu","kind":"openai",' +
  '"baseUrl":"https://models.example.com/v1","keyVariable":"EU_API_KEY"}';

const upstreams = z.array(z.strictObject({
  name: z.string().min(1).max(200),
  kind: z.enum(SERVER_KINDS),
  baseUrl: z.string().refine(isWebUrl),
  keyVariable: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
}));

/** Reads the further model servers; a text is what is wrong with the setting. */
function readUpstreams(text: string): z.output<typeof upstreams> | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return UPSTREAM_FORM;
  }
  const read = upstreams.safeParse(value);
  if (!read.success) return UPSTREAM_FORM;
  const names = read.data.map(({ name }) => name);
  const twice = names.find((name, place) => names.indexOf(name) < place);
  return twice === undefined ? read.data : `names the server "${twice}" twice`;
}

function operatorsOf(
  supportToken: string | undefined,
  others: readonly OperatorToken[] = [],
): readonly OperatorToken[] {
  if (supportToken === undefined) return others;
  return [{ name: "support", role: "support", token: supportToken }, ...others];
}

/**
 * Refuses a token of two people: a sign-in could not be attributed.
 *
 * @param adminToken null before one exists
 */
export function refuseSharedTokens(operators: readonly OperatorToken[], adminToken: string | null): void {
  const admin = adminToken === null ? [] : [{ name: "admin", role: "admin", token: adminToken } as const];
  const support = operators.filter(({ name }) => name === "support");
  const setting = shareToken([...admin, ...support])
    ? "HOLDFAST_SUPPORT_TOKEN"
    : shareToken([...admin, ...operators])
    ? "HOLDFAST_CONSOLE_TOKENS"
    : null;
  if (setting === null) return;
  throw new ConfigError(
    `Cannot start: ${setting} has a duplicate token; give each person a different one`,
  );
}

/** Refuses the wildcard address, which other processes cannot connect to. */
function isReachableAddress(text: string): boolean {
  const address = readAddress(text);
  return address !== null && !WILDCARD_HOSTS.has(address.host);
}

/** Reads "host:port"; null for any other text. */
function readAddress(text: string): { readonly host: string; readonly port: number } | null {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined || Number(port) > 65_535 ? null : { host, port: Number(port) };
}

/** Whether only programs of the same machine can connect to a host. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Hosts that mean every address of a machine. */
const WILDCARD_HOSTS: ReadonlySet<string> = new Set(["0.0.0.0", "::", "*"]);

function isWebUrl(text: string): boolean {
  return URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
}

function isWebOrigin(text: string): boolean {
  return isWebUrl(text) && new URL(text).pathname === "/" && new URL(text).search === "";
}
