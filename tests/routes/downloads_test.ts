// Downloads of exports: shares of a person and an app, HEAD, and that none keeps a cell from moving.

import assert from "node:assert/strict";
import { answerHead, isHead } from "../../routes/http/head.ts";
import { DOWNLOAD_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { linkOf, realmOf } from "./people_support.ts";
import { serviceOfFile } from "./support.ts";

const service = serviceOfFile();

Deno.test("a person and an app have few open downloads; another one receives a time to come again", async () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { ofPersonMax: 1, ofAppMax: 2 });
  const app = await service.newApp();
  const { downloads } = service.serving();
  const take = (id: string) =>
    downloads.take({ app: app.appId, person: `${realmOf(service, app).realm}/${id}` });
  const fetched = async (id: string) => await service.http.fetch(new Request(await linkOf(app, id)));
  const first = take("u");
  const refused = await fetched("u");
  assert.equal(refused.headers.get("retry-after"), "60");
  const { error } = await refused.json();
  assert.deepEqual([refused.status, error.code], [429, "rate_limited"]);
  assert.match(error.message, /^Too many downloads/);
  assert.equal((await (await fetched("v")).json()).distinctId, "v");
  const second = take("v");
  assert.equal((await fetched("w")).status, 429);
  first?.end("left");
  assert.equal((await (await fetched("u")).json()).distinctId, "u");
  second?.end("left");
});

Deno.test("HEAD checks the link and makes nothing; a download under way keeps no cell from moving", async () => {
  const app = await service.newApp();
  const link = await linkOf(app, "u");
  const { counts, database } = service.serving();
  const queried: string[] = [];
  const { query } = database;
  database.query = (...args: Parameters<typeof query>) => {
    queried.push(args[0]);
    return query.apply(database, args) as never;
  };
  const head = await service.http.fetch(new Request(link, { method: "HEAD" }));
  database.query = query;
  assert.deepEqual([head.status, head.body, queried], [200, null, []]);
  assert.match(head.headers.get("content-disposition") ?? "", /attachment/);
  const wrong = await service.http.fetch(new Request(`${link}x`, { method: "HEAD" }));
  assert.equal(wrong.status, 401);
  const open = counts.downloads.open;
  const answer = await service.http.fetch(new Request(link));
  assert.equal(counts.downloads.open, open + 1);
  const { doors } = service.serving().term;
  assert.ok(doors.held.every((cell) => !doors.isPinned(cell)));
  const { held } = doors;
  await doors.shut(held);
  doors.open(held);
  assert.equal((await answer.json()).distinctId, "u");
  assert.equal(counts.downloads.open, open);
});

Deno.test("HEAD has the status and headers of GET, and cancels the body", async () => {
  let isCancelled = false;
  const body = new ReadableStream({ cancel: () => void (isCancelled = true) }, { highWaterMark: 0 });
  const request = new Request("http://service.test/x", { method: "HEAD", headers: { "x-request-id": "r" } });
  const answer = await answerHead(request, (asGet) => {
    assert.deepEqual([asGet.method, isHead(asGet), isHead(request)], ["GET", true, false]);
    const id = asGet.headers.get("x-request-id") ?? "";
    return new Response(body, { status: 203, headers: { "x-request-id": id } });
  });
  assert.deepEqual([answer.status, answer.headers.get("x-request-id"), answer.body], [203, "r", null]);
  assert.equal(isCancelled, true);
});
