// Keys of users: creating, checking and revoking one, and what a merge does to them.

import assert from "node:assert/strict";
import { END_USER_KEYS_MAX } from "../../../src/domain/state/end_user_key.ts";
import { Scene } from "../scene.ts";

const DAY_MS = 86_400_000;
const NOON = Date.UTC(2026, 2, 10, 12);

function create(scene: Scene, hash: string, expiresAt: number | null = null, realNow = NOON) {
  const input = { name: hash, expiresAt, prefix: "uk_live_abcd", hash, realNow };
  const { result } = scene.do("createEndUserKey", input);
  return result.ok ? result.answer.id : result.refusal.code;
}

/** The user for whom a key acts, or the code of the refusal; with the number of changes. */
function use(scene: Scene, id: string, hash: string, realNow = NOON): [string, number] {
  const { result, changes } = scene.do("useEndUserKey", { id, hash, realNow });
  return [result.ok ? result.answer.userId : result.refusal.code, changes.length];
}

Deno.test("a key is valid by its hash, until it expires or is revoked, in real time alone", () => {
  const scene = new Scene([]);
  const id = create(scene, "aa", NOON + DAY_MS);
  assert.equal(create(scene, "bb", NOON), "invalid_request");
  const other = create(scene, "cc");
  scene.now += 100 * DAY_MS;
  const rows: [name: string, id: string, hash: string, realNow: number, holder: string, changes: number][] = [
    ["first use", id, "aa", NOON, "u", 1],
    ["again on that day", id, "aa", NOON + DAY_MS / 2 - 1, "u", 0],
    ["on the next day", id, "aa", NOON + DAY_MS / 2, "u", 1],
    ["hash of another key", id, "cc", NOON, "invalid_key", 0],
    ["a part of the hash", id, "a", NOON, "invalid_key", 0],
    ["more than the hash", id, "aaa", NOON, "invalid_key", 0],
    ["no hash", id, "", NOON, "invalid_key", 0],
    ["an unknown id", "uky_7_x", "aa", NOON, "invalid_key", 0],
    ["the last moment", id, "aa", NOON + DAY_MS - 1, "u", 0],
    ["expired", id, "aa", NOON + DAY_MS, "invalid_key", 0],
    ["never expires", other, "cc", NOON + 9_999 * DAY_MS, "u", 1],
  ];
  for (const [name, key, hash, realNow, ...expected] of rows) {
    assert.deepEqual(use(scene, key, hash, realNow), expected, name);
  }
  assert.equal(scene.do("revokeEndUserKey", { id: other, realNow: NOON }).result.ok, true);
  for (const hash of ["cc", ""]) assert.deepEqual(use(scene, other, hash), ["invalid_key", 0]);
  assert.equal(scene.do("revokeEndUserKey", { id: other, realNow: NOON }).result.ok, false);
  const last = scene.changes.findLast(({ table }) => table === "end_user_keys")?.row;
  assert.deepEqual(last, { ...last, id: other, hash: "", name: null, revokedAt: NOON });
});

Deno.test("a user has a bounded number of keys, and an expired one gives way", () => {
  const scene = new Scene([]);
  const first = create(scene, "0", NOON + 1);
  for (let place = 1; place < END_USER_KEYS_MAX; place++) create(scene, `${place}`);
  assert.equal(create(scene, "over"), "invalid_request");
  assert.match(create(scene, "in", null, NOON + 1), /^uky_/);
  assert.equal(scene.state.endUserKeys?.size, END_USER_KEYS_MAX);
  assert.equal(scene.state.endUserKeys?.has(first), false);
  assert.equal(create(scene, "over", null, NOON + 1), "invalid_request");
});

Deno.test("a merge moves the keys, and each goes on for the canonical user", () => {
  const to = new Scene([]);
  const from = new Scene([], undefined, [], { key: 8, id: "old", beside: to });
  const [kept, moved] = [create(to, "to"), create(from, "from")];
  from.mergeInto(to);
  assert.deepEqual([use(to, kept, "to")[0], use(to, moved, "from")[0]], ["u", "u"]);
  assert.equal(to.state.endUserKeys?.get(moved)?.userKey, 7);
});
