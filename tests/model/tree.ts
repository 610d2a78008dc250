// The tree of users. A user names its parent by an id, which may become an alias later and then means the canonical user.
// Nothing else is kept: paths and children are looked up anew each time.

import { fromNumber, toNumber } from "./decimal.ts";
import { type Input, type ModelReply, refusal, type RefusalCode, success } from "./document.ts";
import type { User, World } from "./state.ts";

/** The most users of a path. */
const PATH_MAX = 8;

/** The users above, nearest first. */
export function usersAbove(world: World, user: User): User[] {
  const above: User[] = [];
  for (let { parentId } = user; parentId !== null;) {
    const next = world.user(parentId);
    above.push(next);
    if (above.length > PATH_MAX) throw new Error(`a path of more than ${PATH_MAX} users`);
    ({ parentId } = next);
  }
  return above;
}

export function childrenOf(world: World, user: User): User[] {
  return [...world.users.values()].filter(({ parentId }) =>
    parentId !== null && world.user(parentId) === user
  );
}

/** The users on the longest way down, without the user itself. */
export function heightBelow(world: World, user: User): number {
  return Math.max(0, ...childrenOf(world, user).map((child) => 1 + heightBelow(world, child)));
}

export function setParent(world: World, input: Input): ModelReply {
  const { userId, parentId, memberLimits } = input;
  const user = world.user(String(userId));
  const parent = typeof parentId === "string" ? world.user(parentId) : null;
  const quotas = Object.entries(memberLimits ?? {}) as [string, { quota: number }][];
  const limits = quotas.length === 0
    ? null
    : new Map(quotas.map(([groupId, { quota }]) => [groupId, fromNumber(quota)]));
  if (parent === null && limits !== null) return refusal("invalid_request");
  const above = parent === null ? [] : [parent, ...usersAbove(world, parent)];
  if (above.includes(user)) {
    world.note("tree: a circle is refused");
    return refusal("parent_cycle");
  }
  if (1 + above.length + heightBelow(world, user) > PATH_MAX) {
    world.note("tree: a path that is too long is refused");
    return refusal("path_too_long");
  }
  const before = user.parentId === null ? null : world.user(user.parentId);
  if (before === parent) world.note("tree: the same parent again");
  else if (before !== null) world.note("tree: another parent");
  // Choice: limits that are left out stay under the same parent, also where its id is an alias by now.
  if (memberLimits !== undefined || before !== parent) user.memberLimits = limits;
  user.parentId = parent?.id ?? null;
  if (hasOpenHold(world, user)) world.note("tree: a move under an open hold");
  return success({
    userId: user.id,
    parentId: parent?.id ?? null,
    path: [user, ...above].map(({ id }) => id),
    memberLimits: limitsShown(user),
  });
}

/** The limits of a user under its parent as answers have them. */
export function limitsShown({ memberLimits }: User) {
  return memberLimits && Object.fromEntries(
    [...memberLimits].map(([groupId, quota]) => [groupId, { quota: toNumber(quota) }]),
  );
}

function hasOpenHold(world: World, user: User): boolean {
  return world.reservations.some((hold) => hold.user === user && hold.state === "held");
}

/** Why two users of a tree may not become one; null for no reason. */
export function refusalInTree(world: World, from: User, to: User): RefusalCode | null {
  const [aboveFrom, aboveTo] = [usersAbove(world, from), usersAbove(world, to)];
  if (aboveFrom.includes(to) || aboveTo.includes(from)) return "alias_conflict";
  const above = to.parentId === null ? aboveFrom : aboveTo;
  const below = Math.max(heightBelow(world, from), heightBelow(world, to));
  return above.length + 1 + below > PATH_MAX ? "path_too_long" : null;
}

/** The number of children that a merge moves, where either user has a place in a tree. */
export function movedChildren(world: World, from: User, to: User): { movedChildren?: number } {
  const children = childrenOf(world, from).length;
  const hasPlace = [from, to].some((user) => user.parentId !== null || childrenOf(world, user).length > 0);
  return hasPlace ? { movedChildren: children } : {};
}

/** Gives the canonical user of a merge its place. The alias's children name it by its old id. */
export function mergeInTree(world: World, from: User, to: User): void {
  if (childrenOf(world, from).length > 0) world.note("tree: a parent becomes an alias");
  if (to.parentId !== null || from.parentId === null) return;
  world.note("tree: a merge takes over the parent");
  to.parentId = from.parentId;
  to.memberLimits = from.memberLimits;
}
