// What the audit log keeps of each call of the admin API that writes, by the call's id: short values, never a secret. All
// of them are in this file, so that a reader can see at once that none holds a key, a token or a whole address.

import type { Values } from "../../src/audit/audit.ts";
import type { Mode } from "../../actors/port.ts";
import type { CatalogChange } from "../../src/tenant/catalog/changes.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import type { Webhook } from "../../src/storage/rows/registry_rows.ts";

/** The source of the values. */
export interface AuditedWorld {
  readonly registry: Pick<Registry, "apps" | "workspaces">;
}

/** What the log keeps of a call. */
interface AuditOf {
  /** False for input that writes nothing, such as a dry run. Left out: every call writes. */
  readonly isWrite?: (input: Values) => boolean;
  /** The values before the call. */
  readonly before?: (registry: AuditedWorld["registry"], input: Values) => Values | null;
  /** The values after it, made from the input and the data of the answer. */
  readonly after: (input: Values, data: Values) => Values | null;
}

const keyOnly: AuditOf["after"] = ({ name }, { keyId, class: keyClass, mode }) => ({
  keyId,
  class: keyClass,
  mode,
  name,
});
const counts: AuditOf["after"] = (_, data) => {
  const made = Object.entries(data).filter(([, count]) => count !== 0);
  return made.length === 0 ? null : Object.fromEntries(made);
};

/** By the ids of the calls. */
export const AUDIT_VALUES: Readonly<Record<string, AuditOf>> = {
  createWorkspace: { after: (_, data) => data },
  changeWorkspace: {
    before: ({ workspaces }, { workspaceId, ...changes }) => {
      const workspace = workspaces.get(workspaceId as string) as Values | undefined;
      return workspace === undefined ? null : partOf(workspace, changes);
    },
    after: (input) => input,
  },
  createApp: { after: ({ name }, { workspaceId }) => ({ name, workspaceId }) },
  rotateIdentitySecret: { after: (_, { oldValidUntil }) => ({ oldValidUntil }) },
  createReader: { after: (_, { name }) => ({ name }) },
  removeReader: { after: (_, { name }) => ({ name }) },
  createKey: { after: keyOnly },
  revokeKey: { after: keyOnly },
  rollKey: {
    after: ({ keyId: oldKeyId }, { keyId, oldValidUntil }) => ({ oldKeyId, keyId, oldValidUntil }),
  },
  applyCatalog: {
    isWrite: ({ dryRun }) => dryRun !== "true",
    before: (registry, input) => versionOf(registry, input, input["mode"] as Mode | undefined),
    after: ({ mode }, data) => ({ mode, ...catalogValues(data) }),
  },
  promoteCatalog: {
    before: (registry, input) => versionOf(registry, input),
    after: (_, data) => catalogValues(data),
  },
  dropCatalog: {
    before: (registry, input) => versionOf(registry, input, "test"),
    after: ({ mode }, data) => ({ mode, ...catalogValues(data) }),
  },
  whatIf: { isWrite: () => false, after: () => null },
  createWebhook: { after: (input, { webhookId }) => ({ webhookId, ...webhookValues(input) }) },
  changeWebhook: {
    before: (registry, input) => {
      const { webhookId, appId: _, ...changes } = input;
      const webhook = appOf(registry, input)?.webhooks.get(webhookId as string);
      return webhook === undefined ? null : partOf(webhookValues({ ...webhook }), changes);
    },
    after: ({ webhookId, ...input }) => ({ webhookId, ...webhookValues(input) }),
  },
  deleteWebhook: {
    before: (registry, input) => {
      const webhook = appOf(registry, input)?.webhooks.get(input["webhookId"] as string);
      return webhook === undefined ? null : webhookValues({ ...webhook });
    },
    after: ({ webhookId }) => ({ webhookId }),
  },
  rotateWebhookSecret: { after: ({ webhookId }) => ({ webhookId }) },
  pingWebhook: { after: ({ webhookId }, { messageId }) => ({ webhookId, messageId }) },
  redeliverMessages: { after: ({ webhookId, status }, { messages }) => ({ webhookId, status, messages }) },
  redeliverMessage: { after: ({ webhookId, messageId }) => ({ webhookId, messageId }) },
  setStripe: {
    before: (registry, input) => ({ isSet: appOf(registry, input)?.stripe.has(input["mode"] as Mode) }),
    after: ({ mode }) => ({ mode, isSet: true }),
  },
  retryUnhandledStripe: { after: ({ eventId }, { handled }) => ({ eventId, handled }) },
  deleteStripe: { after: ({ mode }) => ({ mode, isSet: false }) },
  splitStore: { after: ({ store, to, cells }) => ({ store, to, cells }) },
  sweep: { after: counts },
  moveHistory: { after: counts },
};

function appOf({ apps }: AuditedWorld["registry"], { appId }: Values): App | undefined {
  return apps.get(appId as string);
}

function versionOf(registry: AuditedWorld["registry"], input: Values, mode: Mode = "live"): Values {
  return { version: appOf(registry, input)?.realms[mode].applied?.version ?? 0 };
}

function catalogValues({ version, changes }: Values): Values {
  return { version, changes: changesText(changes as CatalogChange[]) };
}

/** The members of a record that the changes name. */
function partOf(record: Values, changes: Values): Values {
  return Object.fromEntries(Object.keys(changes).map((name) => [name, record[name]]));
}

/** Keeps only the host of an address: some receivers trust every sender that knows the whole address. */
function webhookValues(
  { url, mode, events, description, disabled }: Partial<Record<keyof Webhook, unknown>> & Values,
) {
  return { url: url === undefined ? undefined : hostOf(String(url)), mode, events, description, disabled };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "";
}

function changesText(changes: readonly CatalogChange[]): string {
  return changes.map(({ change, path, id }) => `${path === id ? path : `${path} (${id})`} ${change}`).join(
    ", ",
  );
}
