// Reading traces: every form of a row, and faults by their lines.

import assert from "node:assert/strict";
import { checkTrace, readTrace } from "./trace.ts";
import { withFile } from "../tasks/support.ts";

const TITLES = "TIMESTAMP,ContextTokens,GeneratedTokens";

Deno.test("a trace is read row by row, whatever its line ends and the form of its times", async () => {
  const lines = [
    TITLES,
    "2023-11-16 18:17:03.9799600,4808,10",
    "2023-11-16T18:17:04Z,0,8",
    "",
    "2023-11-16 19:17:05.5+01:00,7,0",
  ];
  for (const end of ["\n", "\r\n"]) {
    await withFile("trace.csv", lines.join(end), async (path) => {
      const rows = await Array.fromAsync(readTrace(path));
      const at = Date.UTC(2023, 10, 16, 18, 17, 3);
      assert.deepEqual(
        rows.map(({ index, contextTokens, generatedTokens }) => [index, contextTokens, generatedTokens]),
        [
          [0, 4808, 10],
          [1, 0, 8],
          [2, 7, 0],
        ],
      );
      assert.deepEqual(rows.map(({ atMs }) => Math.round((atMs - at) * 1000) / 1000), [979.96, 1000, 2500]);
      assert.deepEqual(await checkTrace(path, 5), { rows: 3, faults: [] });
    });
  }
});

Deno.test("each fault of a trace names its line", async () => {
  const rows: [string, RegExp][] = [
    ["2023-11-16 18:17:03,1", /^line 2: must have 3 values, not 2$/],
    ["2023-11-16 18:17:03,1,2,3", /^line 2: must have 3 values, not 4$/],
    ["2023-13-16 18:17:03,1,2", /^line 2: TIMESTAMP: must be a time, not "2023-13-16 18:17:03"$/],
    ["yesterday,1,2", /^line 2: TIMESTAMP/],
    ["2023-11-16 18:17:03,-1,2", /^line 2: ContextTokens: must be a whole number .*, not "-1"$/],
    ["2023-11-16 18:17:03,1,2.5", /^line 2: GeneratedTokens/],
    ["2023-11-16 18:17:03,1,", /^line 2: GeneratedTokens/],
    ["x".repeat(200_000), /^line 2: has more than 1000 characters$/],
  ];
  for (const [line, message] of rows) {
    await withFile("trace.csv", `${TITLES}\n${line}\n2023-11-16 18:17:03,1,2\n`, async (path) => {
      const { faults } = await checkTrace(path, 5);
      assert.match(faults[0]?.message ?? "", message);
      await assert.rejects(Array.fromAsync(readTrace(path)), { message });
    });
  }
});

Deno.test("a trace needs its titles, and only the first faults are gathered", async () => {
  for (const text of ["", "a,b,c\n1,2,3\n"]) {
    await withFile("trace.csv", text, async (path) => {
      const { faults } = await checkTrace(path, 5);
      assert.deepEqual(faults.map(({ message }) => message), [`line 1: the titles must be ${TITLES}`]);
    });
  }
  await withFile("trace.csv", `${TITLES}\n${"x\n".repeat(100)}`, async (path) => {
    assert.equal((await checkTrace(path, 5)).faults.length, 5);
  });
});
