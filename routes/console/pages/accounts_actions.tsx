// The action that puts a user under another one, or under none.

import { type Action, actionRoutes } from "../parts/action.tsx";
import type { Values } from "../parts/form.tsx";
import { loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { setParent } from "../../contract/accounts.ts";
import { getUser } from "../../contract/usage.ts";

const NONE = "none";

function parentIn(values: Values): string | null {
  const text = values["parentId"] ?? "";
  return text === "" ? null : text;
}

const parent: Action<UserSubject, typeof setParent> = {
  path: "/console/apps/:appId/:mode/users/:userId/parent",
  title: "Change parent",
  load: loadUser,
  location: userLocation,
  userId: ({ user }) => user.userId,
  intro: ({ user }) => `Calls of ${user.userId} count at its parent too, and at every user above.`,
  fields: ({ user }) => [{
    name: "parentId",
    label: "Parent",
    kind: "text",
    value: user.parentId ?? "",
    hint: "The ID of an organisation or a team, case-sensitive. Leave empty for no parent.",
  }],
  call: setParent,
  input: ({ user }, values) => ({ userId: user.userId, parentId: parentIn(values) as string }),
  preview: async ({ ask }, { app, user }, values) => {
    const asked = parentIn(values);
    const above = asked === null ? null : await ask.app(app, getUser, { userId: asked });
    if (above !== null && !above.ok) return [{ field: "parentId", message: above.error.message }];
    const parentId = above === null ? null : above.data.userId;
    const before = user.parentId ?? null;
    if (parentId === before) {
      return [{ field: "parentId", message: "No changes: this is the parent already" }];
    }
    const path = above === null ? [] : above.data.path ?? [above.data.userId];
    return {
      sentences: [
        path.length === 0
          ? `Calls of ${user.userId} count at no other user from now on.`
          : `From the next call on, calls of ${user.userId} count at ${path.join(", ")} too.`,
        "What was counted stays, and open holds settle where they were taken.",
        ...before === null ? [] : ["Limits that were set for this user under its parent are removed."],
      ],
      changes: [{ what: "Parent", before: before ?? NONE, after: parentId ?? NONE }],
      verb: "Change parent",
    };
  },
  done: (_, __, { userId, parentId }) =>
    parentId === null ? `${userId} has no parent any more.` : `${userId} is now below ${parentId}.`,
};

/** The action on the place of a user in the tree. */
export const ACCOUNT_ACTIONS = [actionRoutes(parent)];
