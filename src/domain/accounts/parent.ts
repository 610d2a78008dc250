// The parent of a user: calls of the user count at every user above it too. The users above form its path, which has an end
// and at most PATH_MAX users, the user itself included.

import type { UserKey } from "../values/ids.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { type MemberLimits, PATH_MAX } from "../state/user.ts";

/** The input of `PUT /v1/users/{userId}/parent`. The draft's users above are the new parent and those above it. */
export interface SetParentInput {
  /** The canonical user; null for none. */
  readonly parentKey: UserKey | null;
  /** The users on the longest way down from the user, without itself. */
  readonly heightBelow: number;
  /** Absent keeps the limits under the same parent; null clears them. */
  readonly memberLimits?: MemberLimits | null;
}

export interface ParentAnswer {
  readonly userId: string;
  readonly parentId: string | null;
  /** The ids of the path, the user first. */
  readonly path: readonly string[];
  readonly memberLimits: MemberLimits | null;
}

/** Puts a user under a parent, or at the top of its own tree. Both users exist from then on. */
export function setParent(
  draft: Draft,
  { parentKey, heightBelow, memberLimits }: SetParentInput,
  _context: Context,
): Result<ParentAnswer> {
  const { user, above, state } = draft;
  const [parent] = above;
  const limits = memberLimits == null || Object.keys(memberLimits).length === 0 ? null : memberLimits;
  if (parentKey === null && limits !== null) {
    return refused(invalidField("memberLimits", "requires a parent"));
  }
  const own = state.keys;
  const isBelow = above.some(({ user: { parentKey: next } }) => next !== null && own.includes(next));
  if (parentKey !== null && (own.includes(parentKey) || isBelow)) {
    return refused(refusal("parent_cycle", "parentId: must not be the user itself or a user below it"));
  }
  if (1 + above.length + heightBelow > PATH_MAX) {
    return refused(refusal("path_too_long", `A path may have at most ${PATH_MAX} users`));
  }
  if (parent !== undefined && !parent.state.recorded) parent.putUser({});
  // The same user, also where the id that was set is an alias of it by now.
  const before = user.parentKey;
  const isSame = before === parentKey || (before !== null && parent?.state.keys.includes(before) === true);
  const kept = memberLimits === undefined && isSame ? user.memberLimits : limits;
  if (!isSame || !isEqual(kept, user.memberLimits) || !state.recorded) {
    draft.putUser({ parentKey, memberLimits: kept });
  }
  return answered({
    userId: user.id,
    parentId: parent?.user.id ?? null,
    path: [user.id, ...above.map((level) => level.user.id)],
    memberLimits: kept,
  });
}

function isEqual(one: MemberLimits | null, other: MemberLimits | null): boolean {
  const [ids, others] = [Object.keys(one ?? {}), Object.keys(other ?? {})];
  return ids.length === others.length && ids.every((id) => one?.[id] === other?.[id]);
}
