// Actions on API keys: create, roll and revoke; rotating the identity secret.

import { type Action, actionRoutes } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { secretPage } from "../parts/new_secret.tsx";
import { appPath, crumbsOf } from "../parts/page.tsx";
import type { PageContent, PageRequest } from "../parts/page_context.ts";
import { appOf, dataOf, PageError } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { createKey, listKeys, revokeKey, rollKey, rotateIdentitySecret } from "../../contract/admin.ts";

/** An API key as the admin API lists it. */
export type ShownKey = AnswerOf<typeof listKeys>[number];

/** Whether a key is neither revoked nor past its time. */
export function isValid({ revokedAt, validUntil }: ShownKey, now: number): boolean {
  return revokedAt === null && (validUntil === null || Date.parse(validUntil) > now);
}

interface OfApp {
  readonly app: AppMode & { readonly name: string };
}

/** The path of an app's API keys. */
export function keysPath(app: AppMode): string {
  return `${appPath(app)}/keys`;
}

function keysLocation({ app }: OfApp) {
  const back = keysPath(app);
  return { crumbs: crumbsOf(app, { title: "API keys", href: back }), back };
}

const CLASSES = [
  { value: "secret", text: "secret: for your server, full access in this mode" },
  { value: "public", text: "public: for browsers, reads plans and one user's own usage" },
  { value: "reader", text: "reader: for agents and dashboards, reads all data but prompts and responses" },
];

const create: Action<OfApp, typeof createKey> = {
  path: "/console/apps/:appId/:mode/keys/new",
  title: "Create API key",
  load: (request) => ({ app: appOf(request) }),
  location: keysLocation,
  fields: () => [
    { name: "class", label: "Kind", kind: "select", value: "secret", options: CLASSES },
    { name: "name", label: "Name", kind: "text", hint: "What it is for, such as the program that uses it" },
  ],
  call: createKey,
  input: ({ app }, values) => ({
    appId: app.appId,
    mode: app.mode,
    class: values["class"],
    name: values["name"] || undefined,
  }),
  preview: (_, { app }, values) => ({
    sentences: [
      `${app.name} gets a new ${values["class"]} key for ${app.mode} mode. It is valid at once.`,
      "The next page shows the key once. Copy it before you leave that page.",
    ],
    changes: [],
    verb: "Create API key",
  }),
  done: (subject, _, { key }) => newKeyPage(subject, key, "If you lose it, create a new key."),
};

function newKeyPage(subject: OfApp, secret: string, text: string): PageContent {
  return secretPage({
    title: "New API key",
    secret,
    text: `Only a hash of it is stored. ${text}`,
    ...keysLocation(subject),
  });
}

interface KeySubject extends OfApp {
  readonly key: ShownKey;
}

const KEEP_OLD = [
  { value: "0", text: "not at all: calls with it are refused at once" },
  { value: "3600", text: "1 hour" },
  { value: "86400", text: "1 day" },
  { value: "604800", text: "7 days" },
  { value: "2592000", text: "30 days" },
];

function keepOldText(seconds: string | undefined): string {
  return seconds === "0" ? "becomes invalid at once" : `stays valid for ${textOfKeep(seconds)}`;
}

function textOfKeep(seconds: string | undefined): string {
  return KEEP_OLD.find(({ value }) => value === seconds)?.text ?? `${seconds} seconds`;
}

const keepOldField = (label: string) =>
  ({ name: "keepOldSeconds", label, kind: "select", value: "86400", options: KEEP_OLD }) as const;

const roll: Action<KeySubject, typeof rollKey> = {
  path: "/console/apps/:appId/:mode/keys/:keyId/roll",
  title: "Roll API key",
  load: async (request) => await loadKey(request),
  location: keysLocation,
  fields: () => [keepOldField("Keep the old key valid for")],
  call: rollKey,
  input: ({ app, key }, values) => ({
    appId: app.appId,
    keyId: key.keyId,
    keepOldSeconds: Number(values["keepOldSeconds"]),
  }),
  preview: (_, { key }, values) => ({
    sentences: [
      `A new ${key.class} key for ${key.mode} mode takes the place of ${key.prefix}….`,
      `The old key ${keepOldText(values["keepOldSeconds"])}.`,
      "The next page shows the new key once. Copy it before you leave that page.",
    ],
    changes: [],
    verb: "Roll API key",
  }),
  done: (subject, _, { key, oldValidUntil }) =>
    newKeyPage(subject, key, `The old key ${subject.key.prefix}… is valid until ${oldValidUntil}.`),
};

const rotateIdentity: Action<OfApp, typeof rotateIdentitySecret> = {
  path: "/console/apps/:appId/:mode/keys/identity-secret",
  title: "Rotate identity secret",
  load: (request) => ({ app: appOf(request) }),
  location: keysLocation,
  fields: () => [keepOldField("Keep tokens of the old secret valid for")],
  call: rotateIdentitySecret,
  input: ({ app }, values) => ({
    appId: app.appId,
    keepOldSeconds: Number(values["keepOldSeconds"]),
  }),
  preview: (_, { app }, values) => ({
    sentences: [
      `${app.name} gets a new identity secret, which signs end-user tokens of live and test mode at once.`,
      `The old secret ${keepOldText(values["keepOldSeconds"])}.`,
      "The next page shows the new secret once. Copy it before you leave that page.",
    ],
    changes: [],
    verb: "Rotate identity secret",
  }),
  done: ({ app }, _, { identitySecret, oldValidUntil }) =>
    secretPage({
      title: "New identity secret",
      secret: identitySecret,
      text: `Tokens that the old secret signed are valid until ${oldValidUntil} at most.`,
      ...keysLocation({ app }),
    }),
};

const revoke: Action<KeySubject, typeof revokeKey> = {
  path: "/console/apps/:appId/:mode/keys/:keyId/revoke",
  title: "Revoke API key",
  load: async (request) => await loadKey(request),
  location: keysLocation,
  call: revokeKey,
  input: ({ app, key }) => ({ appId: app.appId, keyId: key.keyId }),
  preview: (_, { key }) => ({
    sentences: [`The ${key.class} key ${key.prefix}… of ${key.mode} mode becomes invalid at once.`],
    changes: [{ what: `Key ${key.prefix}…`, before: "active", after: "revoked" }],
    danger: {
      consequence: "Every call with this key is refused. If you still need access, create a new key.",
      typed: key.prefix,
    },
    verb: "Revoke",
  }),
  done: ({ key }) => `The API key ${key.prefix}… is revoked.`,
};

async function loadKey(request: PageRequest): Promise<KeySubject> {
  const app = appOf(request);
  const keys = await request.ask.admin(listKeys, { appId: app.appId }).then(dataOf);
  const key = keys.find(({ keyId, mode }) => keyId === request.params["keyId"] && mode === app.mode);
  if (key === undefined) {
    throw new PageError({ code: "not_found", message: "API key not found." });
  }
  if (!isValid(key, request.ask.serving.clock.now())) {
    throw new PageError(
      { code: "not_found", message: "This API key is already revoked or expired." },
      "Nothing to do",
    );
  }
  return { app, key };
}

/** The actions on API keys. */
export const KEY_ACTIONS = [
  actionRoutes(create),
  actionRoutes(rotateIdentity),
  actionRoutes(roll),
  actionRoutes(revoke),
];
