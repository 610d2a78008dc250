// The keys of a user: their card on the user's page, and the actions to create and revoke one.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { Time, timeLabel } from "../parts/format.tsx";
import { textIn, timeIn } from "../parts/form.tsx";
import { secretPage } from "../parts/new_secret.tsx";
import { segmentOf, userPath } from "../parts/page.tsx";
import { mayChange, type PageRequest } from "../parts/page_context.ts";
import { loadUser, PageError, tabLocation, type UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { createUserKey, listUserKeys, revokeUserKey } from "../../contract/user_keys.ts";

type UserKey = AnswerOf<typeof listUserKeys>["keys"][number];

/** Reads the keys of a user. */
export async function readUserKeys(
  { ask }: PageRequest,
  { app, user: { userId } }: UserSubject,
): Promise<readonly UserKey[]> {
  const answer = await ask.app(app, listUserKeys, { userId });
  return answer.ok ? answer.data.keys : [];
}

/** The keys of the user. */
export function UserKeysCard(
  { request, subject: { app, user }, keys }: {
    request: PageRequest;
    subject: UserSubject;
    keys: readonly UserKey[];
  },
) {
  const base = `${userPath(app, user.userId)}/keys`;
  const changes = mayChange(request.session);
  return (
    <section class="card" aria-labelledby="user-keys">
      <div class="head">
        <h2 id="user-keys">Keys of this user</h2>
        {changes ? <a href={`${base}/new`}>Create key</a> : null}
      </div>
      <Table
        empty="No keys"
        rows={keys}
        columns={[
          { head: "Key", cell: ({ prefix }) => <code>{prefix}…</code> },
          { head: "Name", cell: ({ name }) => name ?? "" },
          { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            head: "Expires",
            cell: ({ expiresAt }) => expiresAt === null ? "never" : <Time at={expiresAt} />,
          },
          {
            head: "Last used",
            cell: ({ lastUsedAt }) => lastUsedAt === null ? "never" : lastUsedAt.slice(0, 10),
          },
          changes
            ? {
              head: "Actions",
              kind: "actions",
              cell: ({ userKeyId }) => <a href={`${base}/${segmentOf(userKeyId)}/revoke`}>Revoke</a>,
            }
            : null,
        ]}
      />
    </section>
  );
}

const create: Action<UserSubject, typeof createUserKey> = {
  path: "/console/apps/:appId/:mode/users/:userId/keys/new",
  title: "Create a key of a user",
  load: loadUser,
  location: tabLocation("/privacy"),
  intro: ({ user }) =>
    `For ${user.userId}: model calls through the gateway, and its own usage and features. No other call.`,
  fields: () => [
    { name: "name", label: "Name", kind: "text", hint: "Where the key is used." },
    {
      name: "expiresAt",
      label: "Expires",
      kind: "time",
      hint: "Empty: never. Real time, also in test mode.",
    },
  ],
  call: createUserKey,
  input: ({ user }, values) => ({
    userId: user.userId,
    name: textIn(values["name"] ?? ""),
    expiresAt: timeIn(values["expiresAt"] ?? ""),
  }),
  preview: (_, { user }, values) => {
    const expiresAt = timeIn(values["expiresAt"] ?? "");
    return {
      sentences: [
        `${user.userId} gets a key. It is valid at once${
          expiresAt === undefined ? "" : `, until ${timeLabel(expiresAt)}`
        }.`,
        "The next page shows the key once. Copy it before you leave that page.",
      ],
      changes: [],
      verb: "Create key",
    };
  },
  done: (subject, _, { key }) =>
    secretPage({
      title: "New key",
      secret: key,
      text: "Only a hash of it is stored. If you lose it, create a new key.",
      ...tabLocation("/privacy")(subject),
    }),
};

interface KeySubject extends UserSubject {
  readonly key: UserKey;
}

const revoke: Action<KeySubject, typeof revokeUserKey> = {
  path: "/console/apps/:appId/:mode/users/:userId/keys/:userKeyId/revoke",
  title: "Revoke a key of a user",
  load: async (request) => await loadKey(request),
  location: tabLocation("/privacy"),
  call: revokeUserKey,
  input: ({ user, key }) => ({ userId: user.userId, userKeyId: key.userKeyId }),
  preview: (_, { user, key }) => ({
    sentences: [`The key ${key.prefix}… of ${user.userId} becomes invalid at once.`],
    changes: [{ what: `Key ${key.prefix}…`, before: "active", after: "revoked" }],
    danger: { consequence: "Every call with this key is refused.", typed: null },
    verb: "Revoke",
  }),
  done: ({ key }) => `The key ${key.prefix}… is revoked.`,
};

async function loadKey(request: PageRequest): Promise<KeySubject> {
  const subject = await loadUser(request);
  const keys = await readUserKeys(request, subject);
  const key = keys.find(({ userKeyId }) => userKeyId === request.params["userKeyId"]);
  if (key !== undefined) return { ...subject, key };
  throw new PageError({ code: "not_found", message: "Key not found, or already revoked." });
}

/** The actions on keys of users. */
export const USER_KEY_ACTIONS = [actionRoutes(create), actionRoutes(revoke)];
