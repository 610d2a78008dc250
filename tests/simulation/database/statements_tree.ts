// Statements of the tree of users, and of erasures in it.

import type { Entry } from "./statements.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { SimTables } from "./tables.ts";
import type { Fields } from "../../support/memory_store.ts";

/** The users directly below users, given with the numbers of their aliases. */
function childrenOf(tables: SimTables, keys: readonly number[]): Fields[] {
  const isChild = (row: Fields) => row.merged_into === null && keys.includes(row.parent_key as number);
  return tables.list("users", isChild).sort(by("key"));
}

function heightBelow(tables: SimTables, keys: readonly number[], most: number): number {
  if (most < 0) return 0;
  const heights = childrenOf(tables, keys).map(({ key }) => {
    const aliases = tables.list("users", (row) => row.merged_into === key).map((row) => row.key as number);
    return 1 + heightBelow(tables, [key as number, ...aliases], most - 1);
  });
  return Math.max(0, ...heights);
}

export const TREE: readonly Entry[] = [
  ["whether a realm has a tree: select 1 from users where realm = $1::int and parent_key is not null", {
    kind: "read",
    run: (tables, [realm]) =>
      tables.list("users", (row) => row.realm === realm && row.parent_key !== null).slice(0, 1),
  }],
  ["height below a user: with recursive below (key, height) as", {
    kind: "read",
    run: (tables, [keys, most]) => {
      const height = heightBelow(tables, numbersOf(keys), Number(most));
      return [{ height: height === 0 ? null : height }];
    },
  }],
  ["number of children: select count(*)::int as children from users where parent_key = any", {
    kind: "read",
    run: (tables, [keys]) => [{ children: childrenOf(tables, numbersOf(keys)).length }],
  }],
  ["some children: select id from users where parent_key = any", {
    kind: "read",
    run: (tables, [keys, limit]) =>
      childrenOf(tables, numbersOf(keys)).slice(0, Number(limit)).map(({ id }) => ({ id: id as string })),
  }],
  ["erase events, and keep what they took above: with gone as ( delete from events where id = any", {
    kind: "write",
    make: ([keys, limit]) => (tables) => {
      const isOf = (row: Fields) => numbersOf(keys).includes(row.user_key as number);
      // Nothing adds up the amounts of erased events here: the books leave out users who get erased.
      return Array.from({ length: tables.remove("events", isOf, Number(limit)) }, () => ({}));
    },
  }],
  ["erase kept amounts: delete from erased_charges where user_key = any", {
    kind: "write",
    make: () => () => [],
  }],
  ["messages that users caused: select id, body from webhook_messages where caused_by = any", {
    kind: "write",
    make: ([keys, limit]) => (tables) =>
      tables.list("webhook_messages", (row) => numbersOf(keys).includes(row.caused_by as number))
        .sort(by("id")).slice(0, Number(limit))
        .map(({ id, body }) => ({ id: id as string, body: body as string })),
  }],
  ["hide causes: update webhook_messages m set body = given.body, caused_by = null", {
    kind: "write",
    make: ([ids, bodies]) => (tables) => {
      const texts = textsOf(bodies);
      for (const [place, id] of textsOf(ids).entries()) {
        const body = texts[place] as string;
        tables.update("webhook_messages", (row) => row.id === id, { body, caused_by: null });
      }
      return [];
    },
  }],
  [
    "first answers that name users: with named as (select id from unnest($2::text::text[]) as given(id)), gone",
    {
      kind: "write",
      make: ([realm, ids, limit, after]) => (tables) => {
        const named = textsOf(ids) as string[];
        const places = named.flatMap((
          id,
        ) => [`"userId":${id}`, `"parentId":${id}`, `[${id}`, `,${id},`, `,${id}]`]);
        const has = (row: Fields, texts: readonly string[]) =>
          row.realm === realm && texts.some((text) => (row.body as string).includes(text));
        tables.remove("idempotency", (row) => row.user_key === null && has(row, named));
        return tables.list(
          "idempotency",
          (row) => row.user_key !== null && (row.key as string) > String(after) && has(row, places),
        ).sort(by("key")).slice(0, Number(limit))
          .map(({ key, body }) => ({ key: key as string, body: body as string }));
      },
    },
  ],
  ["hide users in first answers: update idempotency i set body = given.body", {
    kind: "write",
    make: ([realm, keys, bodies]) => (tables) => {
      const texts = textsOf(bodies);
      for (const [place, key] of textsOf(keys).entries()) {
        const isOf = (row: Fields) => row.realm === realm && row.key === key;
        tables.update("idempotency", isOf, { body: texts[place] as string });
      }
      return [];
    },
  }],
  ["forget who refused: update refusals set refused_by = array(", {
    kind: "write",
    make: () => () => [],
  }],
];
