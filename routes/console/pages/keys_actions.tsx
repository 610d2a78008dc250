// What is done to an app's keys: make one, revoke one.

import { type Act, actAt } from "../parts/action.tsx";
import type { AppMode } from "../parts/ask.ts";
import { NewSecret } from "../parts/new_secret.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { appOf, refusedPage } from "../parts/subject.tsx";

/** A key as the admin API lists it. */
export interface ShownKey {
  readonly keyId: string;
  readonly prefix: string;
  readonly class: "secret" | "public";
  readonly mode: "live" | "test";
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

interface OfApp {
  readonly app: AppMode & { readonly name: string };
}

/** The path of an app's keys. */
export function keysPath(app: AppMode): string {
  return `${appPath(app)}/keys`;
}

function placeOfKeys(_: PageRequest, { app }: OfApp) {
  const back = keysPath(app);
  return { crumbs: [{ title: app.name, href: appPath(app) }, { title: "Keys", href: back }], back };
}

const CLASSES = [
  { value: "secret", text: "secret: for your backend, may do everything in this mode" },
  { value: "public", text: "public: may stand in a page, reads plans and one user's own usage" },
];

const make: Act<OfApp> = {
  path: "/console/apps/:appId/:mode/keys/new",
  title: "Make a key",
  about: (request) => ({ app: appOf(request) }),
  place: placeOfKeys,
  fields: () => [{ name: "class", label: "Kind", kind: "select", value: "secret", options: CLASSES }],
  call: ({ app }, values) => ({
    id: "createKey",
    members: { appId: app.appId, mode: app.mode, class: values["class"] },
    isAdmin: true,
  }),
  preview: (_, { app }, values) => ({
    sentences: [
      `${app.name} gets a new ${values["class"]} key of ${app.mode} mode, which works at once.`,
      "It shows once, on the page after this one. Keep it before you leave that page.",
    ],
    changes: [],
    verb: "Make it",
  }),
  done: ({ app }, _, answer) => {
    const { key } = answer as { readonly key: string };
    return {
      title: "A new key",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Keys", href: keysPath(app) }],
      content: (
        <NewSecret
          title="A new key"
          secret={key}
          text="It is kept as a hash, so nobody can show it again. Whoever loses it makes another one."
          back={keysPath(app)}
        />
      ),
    };
  },
};

interface KeySubject extends OfApp {
  readonly key: ShownKey;
}

const revoke: Act<KeySubject> = {
  path: "/console/apps/:appId/:mode/keys/:keyId/revoke",
  title: "Revoke a key",
  about: async (request) => await aboutKey(request),
  place: placeOfKeys,
  fields: () => [],
  call: ({ app, key }) => ({
    id: "revokeKey",
    members: { appId: app.appId, keyId: key.keyId },
    isAdmin: true,
  }),
  preview: (_, { key }) => ({
    sentences: [`The ${key.class} key ${key.prefix}… of ${key.mode} mode ends at once, everywhere.`],
    changes: [{ what: `Key ${key.prefix}…`, before: "works", after: "revoked" }],
    danger: {
      consequence:
        "Whatever still calls with it is refused from then on. To undo it you would make a new key.",
      typed: key.prefix,
    },
    verb: "Revoke",
  }),
  done: ({ key }) => `The key ${key.prefix}… is revoked.`,
};

async function aboutKey(request: PageRequest): Promise<KeySubject | Shown> {
  const app = appOf(request);
  const keys = await request.ask.admin<ShownKey[]>("listKeys", { appId: app.appId });
  if (!keys.ok) return refusedPage(keys.error);
  const key = keys.data.find(({ keyId, mode }) => keyId === request.params["keyId"] && mode === app.mode);
  if (key === undefined) {
    return { ...refusedPage({ code: "not_found", message: "The app has no such key." }), status: 404 };
  }
  if (key.revokedAt !== null) {
    return refusedPage({ code: "not_found", message: "This key is revoked already." }, "Nothing to do");
  }
  return { app, key };
}

/** The acts on keys. */
export const KEY_ACTS = [actAt(make), actAt(revoke)];
