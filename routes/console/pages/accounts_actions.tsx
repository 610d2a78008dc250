// The actions that put a user under another one or under none, and limit what it uses of the users above.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { amountText } from "../parts/format.tsx";
import { numberIn, type Values } from "../parts/form.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { loadUser, PageError, userLocation, type UserSubject } from "../parts/subject.tsx";
import { setParent } from "../../contract/accounts.ts";
import { getUsage, getUser } from "../../contract/usage.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";

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
        ...user.memberLimits === undefined ? [] : ["The member limits of this user are removed."],
      ],
      changes: [{ what: "Parent", before: before ?? NONE, after: parentId ?? NONE }],
      verb: "Change parent",
    };
  },
  done: (_, __, { userId, parentId }) =>
    parentId === null ? `${userId} has no parent any more.` : `${userId} is now below ${parentId}.`,
};

/** A limit group by which a user may be limited, with the users above that have it. */
interface SharedGroup {
  readonly groupId: string;
  readonly label: string;
  readonly unit?: Unit;
  readonly accounts: readonly string[];
}

interface MemberSubject extends UserSubject {
  readonly groups: readonly SharedGroup[];
}

const memberLimits: Action<MemberSubject, typeof setParent> = {
  path: "/console/apps/:appId/:mode/users/:userId/member-limits",
  title: "Member limits",
  load: async (request) => {
    const subject = await loadUser(request);
    const groups = await readGroups(request, subject);
    if (groups.length > 0) return { ...subject, groups };
    const message = "No user above has a limit. Give one a plan with limits, or change the parent.";
    throw new PageError({ code: "not_found", message }, "No limits above");
  },
  location: userLocation,
  intro: ({ user }) => `The most that ${user.userId} may use of limits of the users above.`,
  fields: ({ user, groups }) =>
    groups.map(({ groupId, label, unit, accounts }) => {
      const limit = user.memberLimits?.[groupId];
      const of = accounts.length === 0 ? "No user above has it now" : `Of ${accounts.join(", ")}`;
      return {
        name: `memberLimits.${groupId}`,
        label,
        kind: "number",
        value: limit === undefined ? "" : String(limit.quota),
        hint: `${of}. Leave empty for the limit of every member, if there is one.${
          unit === "cents" ? " Enter cents." : ""
        }`,
      };
    }),
  call: setParent,
  input: (subject, values) => ({
    userId: subject.user.userId,
    parentId: subject.user.parentId as string,
    memberLimits: limitsIn(subject, values),
  }),
  preview: (_, subject, values) => {
    const { user, groups } = subject;
    const then = limitsIn(subject, values);
    const changes = groups.flatMap(({ groupId, label, unit }) => {
      const [before, after] = [user.memberLimits?.[groupId], then[groupId]].map((limit) =>
        limit === undefined ? NONE : amountText(limit.quota as number, unit)
      ) as [string, string];
      return before === after ? [] : [{ what: label, before, after }];
    });
    if (changes.length === 0) return [{ field: null, message: "No changes: these limits are already set." }];
    return {
      sentences: [
        `Calls of ${user.userId} are refused beyond these limits from the next call on. Usage is kept.`,
        "They are removed when the parent changes.",
      ],
      changes,
      basis: { parentId: user.parentId, memberLimits: user.memberLimits ?? null },
      verb: "Set limits",
    };
  },
  done: ({ user }) => `The member limits of ${user.userId} are updated.`,
};

/** Reads the limit groups of the users above, nearest first, then others by which the user is limited already. */
async function readGroups({ ask }: PageRequest, { app, user }: UserSubject): Promise<SharedGroup[]> {
  const usage = await ask.app(app, getUsage, { userId: user.userId, levels: "true" });
  const levels = usage.ok ? usage.data.levels ?? [] : [];
  const groups = new Map<string, SharedGroup>();
  for (const { userId = "", counters } of levels) {
    for (const { groupId, label, unit } of counters) {
      const known = groups.get(groupId) ?? { groupId, label, unit, accounts: [] };
      groups.set(groupId, { ...known, accounts: [...known.accounts, userId] });
    }
  }
  for (const groupId of Object.keys(user.memberLimits ?? {})) {
    if (!groups.has(groupId)) groups.set(groupId, { groupId, label: groupId, accounts: [] });
  }
  return [...groups.values()];
}

function limitsIn({ groups }: MemberSubject, values: Values): Record<string, { quota: number | string }> {
  return Object.fromEntries(
    groups.flatMap(({ groupId }) => {
      const quota = numberIn(values[`memberLimits.${groupId}`] ?? "");
      return quota === undefined ? [] : [[groupId, { quota }]];
    }),
  );
}

/** The actions on the place of a user in the tree. */
export const ACCOUNT_ACTIONS = [actionRoutes(parent), actionRoutes(memberLimits)];
