// Accounts: puts users under organisations and teams, and reads who is below them.

import { CallGroup } from "./call_group.ts";
import { pagesByCursor } from "./pages.ts";
import type { CallOptions } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type {
  Child,
  ChildrenPage,
  ChildrenQuery,
  Member,
  MembersPage,
  MembersQuery,
  ParentAnswer,
  ParentInput,
} from "./wire_types.ts";

const PAGE_MAX = 100;

/** `client.accounts`. */
export class Accounts extends CallGroup {
  /**
   * Puts a user under another one, or with null under none. From the next call on, calls of the user count at every user
   * above it too. A new id becomes a user.
   *
   * @example
   * ```ts
   * await client.accounts.setParent("team_1", "org_1");
   * const { path } = await client.accounts.setParent("user_1", "team_1");
   * console.log(path); // ["user_1", "team_1", "org_1"]
   * const hold = await client.reserve("user_1", "image.render");
   * console.log(hold.levels?.map(({ userId }) => userId)); // ["team_1", "org_1"]
   * ```
   */
  setParent(
    userId: string,
    parentId: string | null,
    options: Pick<ParentInput, "memberLimits"> = {},
    call?: CallOptions,
  ): Promise<ParentAnswer> {
    return this.send("PUT", `/users/${pathMember("userId", userId)}/parent`, "secret", call, {
      ...options,
      parentId,
    });
  }

  /**
   * Reads a page of the users directly below a user, by id, each with the number of its own children.
   *
   * @example
   * ```ts
   * await client.accounts.setParent("user_1", "team_1");
   * const { children, cursor } = await client.accounts.children("team_1", { limit: 10 });
   * console.log(children); // [{ userId: "user_1", children: 0 }]
   * console.log(cursor); // null
   * ```
   */
  children(userId: string, query: ChildrenQuery = {}, call?: CallOptions): Promise<ChildrenPage> {
    const path = `/users/${pathMember("userId", userId)}/children`;
    return this.send("GET", path, "secret", call, query);
  }

  /**
   * Reads all users directly below a user, by id, page by page as you go. `limit` is the size of a page.
   *
   * @example
   * ```ts
   * await client.accounts.setParent("user_1", "team_1");
   * const ids: string[] = [];
   * for await (const { userId } of client.accounts.childrenAll("team_1")) ids.push(userId);
   * console.log(ids); // ["user_1"]
   * ```
   */
  childrenAll(
    userId: string,
    query: Omit<ChildrenQuery, "cursor"> = {},
    call?: CallOptions,
  ): AsyncGenerator<Child, void> {
    return pagesByCursor(async (cursor) => {
      const page = await this.children(userId, { limit: PAGE_MAX, ...query, cursor }, call);
      return { rows: page.children, next: page.cursor };
    });
  }

  /**
   * Reads a page of the users below a user that used one of its limit groups in the running window, most first.
   *
   * @example
   * ```ts
   * await client.subscriptions.upsert({ userId: "org_1", planId: "Organisation" });
   * await client.accounts.setParent("user_1", "org_1", { memberLimits: { lg_org_images: { quota: 20 } } });
   * await client.track("user_1", "image.render", 1, {}, { count: 3 });
   * const { members } = await client.accounts.members("org_1", { groupId: "lg_org_images" });
   * console.log(members); // [{ userId: "user_1", count: 3, quota: 20, costCents: 0 }]
   * ```
   */
  members(userId: string, query: MembersQuery, call?: CallOptions): Promise<MembersPage> {
    const path = `/users/${pathMember("userId", userId)}/members`;
    return this.send("GET", path, "secret", call, query);
  }

  /**
   * Reads all of them, page by page as you go. `limit` is the size of a page.
   *
   * @example
   * ```ts
   * await client.subscriptions.upsert({ userId: "org_1", planId: "Organisation" });
   * await client.accounts.setParent("user_1", "org_1");
   * await client.track("user_1", "image.render");
   * for await (const { userId, count } of client.accounts.membersAll("org_1", { groupId: "lg_org_images" })) {
   *   console.log([userId, count]); // ["user_1", 1]
   * }
   * ```
   */
  membersAll(
    userId: string,
    query: Omit<MembersQuery, "cursor">,
    call?: CallOptions,
  ): AsyncGenerator<Member, void> {
    return pagesByCursor(async (cursor) => {
      const page = await this.members(userId, { limit: PAGE_MAX, ...query, cursor }, call);
      return { rows: page.members, next: page.cursor };
    });
  }
}
