// The tree of users: parents and children.

import type { Realm } from "../../actors/call.ts";
import type { Directory } from "../../actors/directory.ts";
import type { Term } from "../../actors/term.ts";
import { REQUEST_LIMITS, SWEEP_LIMITS } from "../../src/process/limits.ts";
import {
  FIRST_MEMBER,
  listDueMembers,
  listMembers,
  type MemberRow,
  type MembersOf,
  readMembersCursor,
} from "../../src/storage/queries/members.ts";
import { type Amount, numberOf } from "../../src/domain/values/amount.ts";
import type { ParentAnswer } from "../../src/domain/accounts/parent.ts";
import { listChildren, readChildrenCursor } from "../../src/storage/stores/tree_store.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/accounts.ts";
import { quotasOf } from "../contract/fields.ts";
import { failure, success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { invalidMember } from "../http/errors.ts";
import { handledOf, keepingOf } from "../http/turn.ts";
import { showQuotas } from "./shown_records.ts";

interface AccountsWorld {
  readonly term: Pick<Term, "flush" | "tree"> & {
    readonly directory: Pick<Directory, "actorOf" | "runById" | "runByKey">;
  };
  readonly database: Parameters<typeof listChildren>[0];
}

const endpoint = endpointsOn<AccountsWorld>();

export const ACCOUNTS: readonly Endpoint<AccountsWorld>[] = [
  endpoint(contract.setParent, async ({ world, caller: { realm }, input, idempotent }) => {
    const { userId, parentId } = input;
    const memberLimits = quotasOf(input.memberLimits);
    const keeping = idempotent === null ? null : keepingOf(idempotent, showParent);
    const result = await world.term.tree.setParent({ realm, userId, parentId, memberLimits, keeping });
    return handledOf(result, showParent);
  }),
  endpoint(contract.listChildren, async ({ world, caller: { realm }, input }) => {
    const { userId, limit = REQUEST_LIMITS.childrenLimit, cursor } = input;
    const after = cursor === undefined ? null : readChildrenCursor(cursor);
    if (after === undefined) throw invalidMember("cursor", "is not a cursor of this list");
    const { state: { keys } } = await world.term.directory.actorOf(realm.realm, userId);
    await world.term.flush();
    return success(await listChildren(world.database, { keys, after, limit }));
  }),
  endpoint(contract.listMembers, async ({ world, caller: { realm }, input }) => {
    const { userId, groupId, limit = REQUEST_LIMITS.childrenLimit, cursor } = input;
    const after = cursor === undefined ? FIRST_MEMBER : readMembersCursor(cursor);
    if (after === undefined) throw invalidMember("cursor", "is not a cursor of this list");
    const found = await world.term.directory.runById(userId, { realm, name: "members", input: { groupId } });
    if (!found.ok) return failure(found.refusal);
    const { keys, shared } = found.answer;
    if (shared === null) return success({ members: [], cursor: null });
    const { group, shares } = shared;
    await settleMembers(world, realm, { keys, shares });
    await world.term.flush();
    const page = await listMembers(world.database, { keys, shares }, after, limit);
    return success({
      members: page.members.map((row) => showMember(row, group.perMember)),
      cursor: page.cursor,
    });
  }),
];

/** Settles what is due of members: holds that have lapsed are no part of a list. */
async function settleMembers({ term, database }: AccountsWorld, realm: Realm, of: MembersOf): Promise<void> {
  for (let isLast = false; !isLast;) {
    await term.flush();
    const due = await listDueMembers(database, realm.realm, of, realm.now(), SWEEP_LIMITS.stepRowsMax);
    const settle = { realm, name: "settle", input: {} } as const;
    await Promise.all(due.map((key) => term.directory.runByKey(key, settle)));
    isLast = due.length < SWEEP_LIMITS.stepRowsMax;
  }
}

function showMember({ userId, count, costCents, limit }: MemberRow, perMember: Amount | null) {
  const quota = limit ?? perMember;
  return {
    userId,
    count: numberOf(count),
    quota: quota === null ? null : numberOf(quota),
    costCents: numberOf(costCents),
  };
}

function showParent(
  { userId, parentId, path, memberLimits }: ParentAnswer,
): DataOf<typeof contract.setParent> {
  return { userId, parentId, path: [...path], memberLimits: showQuotas(memberLimits) };
}
