// First answers in memory: found by their key, whether they are still packed or not, until the tables have them.

import assert from "node:assert/strict";
import { FirstAnswers, nameOf } from "../../actors/first_answers.ts";
import { Batch } from "../../actors/gate.ts";
import type { IdempotencyRow } from "../../actors/port.ts";
import { answerOf, lineOf } from "../../src/storage/rows/tables.ts";

function row(key: string, more: Partial<IdempotencyRow> = {}): IdempotencyRow {
  return {
    realm: 1,
    key,
    requestHash: ".h",
    status: 200,
    body: `{"of":"${key}"}`,
    userKey: 7,
    at: 1000,
    ...more,
  };
}

function add(answers: FirstAnswers, row: IdempotencyRow, batch: Batch): void {
  batch.entries.push(lineOf({ verb: "append", table: "idempotency", row }));
  answers.add(row.realm, batch);
}

function find(answers: FirstAnswers, key: string, realm = 1) {
  return answers.get(nameOf({ realm, key }));
}

Deno.test("each first answer is found unchanged, in a closed batch and in the open one", () => {
  const rows = [
    row("a"),
    row("line\nfeed\t\r\\n \\N\u0001", { requestHash: "", status: 429, userKey: null }),
    row("ünicode😀", { realm: 2, body: "", at: 1.8e12, userKey: 2 ** 40 }),
  ];
  for (const isLooked of [false, true]) {
    const answers = new FirstAnswers({ answerOf });
    const [first, second] = [new Batch(), new Batch()];
    for (const each of rows) add(answers, each, first);
    if (isLooked) assert.equal(find(answers, "none"), undefined);
    add(answers, row("open"), second);
    add(answers, row("a", { body: "newer" }), second);
    for (const each of rows.slice(1)) {
      assert.deepEqual(find(answers, each.key, each.realm), { row: each, batch: first });
    }
    assert.deepEqual(find(answers, "a"), { row: row("a", { body: "newer" }), batch: second });
    add(answers, row("late"), second);
    assert.deepEqual([answers.sizeOf(1), find(answers, "late")?.batch, answers.sizeOf(2)], [4, second, 1]);
  }
});

Deno.test("those of erased users and of dropped realms are forgotten, packed or not, and others stay", () => {
  for (const isLooked of [false, true]) {
    const answers = new FirstAnswers({ answerOf });
    const [first, second] = [new Batch(), new Batch()];
    for (const batch of [first, second]) {
      const of = batch === first ? "first" : "second";
      add(answers, row(`${of} of 7`), batch);
      add(answers, row(`${of} of 8`, { userKey: 8 }), batch);
      add(answers, row(`${of} of none`, { userKey: null }), batch);
      add(answers, row(`${of} elsewhere`, { realm: 2, userKey: 9 }), batch);
    }
    if (isLooked) find(answers, "none");
    first.isDrained = true;
    answers.forget([7]);
    assert.equal(find(answers, "second of 7"), undefined);
    assert.ok(find(answers, "second of 8") !== undefined && find(answers, "second of none") !== undefined);
    assert.deepEqual([answers.sizeOf(1), answers.sizeOf(2)], [2, 1], "the first batch is in the tables");
    add(answers, row("third"), new Batch());
    for (const _ of answers.dropRealms(new Set([1])));
    assert.deepEqual([answers.sizeOf(1), answers.sizeOf(2)], [0, 1]);
    assert.equal(find(answers, "third"), undefined);
    assert.equal(find(answers, "second elsewhere", 2)?.row.userKey, 9);
  }
});
