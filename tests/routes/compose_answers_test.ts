// Compose and the model server: what is asked, and the result of every kind of answer.

import assert from "node:assert/strict";
import {
  catalogOf,
  composeApp,
  composeRecap,
  composeServiceOfFile,
  COST,
  countsOf,
  GOOD,
  MODEL_KEY,
  rowsOf,
  spentOf,
  typeOf,
} from "./compose_support.ts";
import { assertRefused, dataOf } from "./support.ts";
import { type ModelReply, type ModelUsage, USAGE } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";

const { service, model } = composeServiceOfFile();

const good: ModelReply = { content: JSON.stringify(GOOD) };

/** Nothing of a generation is left with the user; the workspace has paid what the model reported. */
async function assertNothingMetered(app: TestApp, spent: number, note = ""): Promise<void> {
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_calls: 0 }, note);
  assert.deepEqual(await rowsOf(service, app, "generations"), [], note);
  assert.deepEqual(await rowsOf(service, app, "events"), [], note);
  assert.equal(await spentOf(service, app), spent, note);
}

Deno.test("an answer that matches is the output, with usage by the model's own report", async () => {
  const app = await composeApp(service);
  model.reply = () => good;
  const { generationId, usage, ...rest } = await dataOf(composeRecap(app));
  assert.deepEqual(rest, { status: "generated", output: GOOD });
  assert.match(generationId, /^gen_/);
  const { eventId, ...figures } = usage;
  assert.deepEqual(figures, { model: "mini", inputTokens: 1000, outputTokens: 500, costCents: COST });
  assert.match(eventId, /^evt_/);
  const [row] = await rowsOf(service, app, "generations");
  assert.ok(row !== undefined);
  const { id, type, model: named, input_tokens, output_tokens, cost_cents, event_id } = row;
  assert.deepEqual(
    [id, type, named, Number(input_tokens), Number(output_tokens), Number(cost_cents), event_id],
    [generationId, "recap", "mini", 1000, 500, COST, eventId],
  );
});

Deno.test("a generation costs what its cached and reasoning tokens cost; a part larger than its whole is added to it", async () => {
  const [mini] = catalogOf([]).models;
  const prices = { cachedInputCentsPerMillionTokens: 5, reasoningCentsPerMillionTokens: 100 };
  const models = [{
    ...mini,
    ...prices,
    tiers: [{ aboveInputTokens: 1000, inputCentsPerMillionTokens: 30 }],
  }];
  const app = await composeApp(service, catalogOf([typeOf("recap", "Recap for {name}.")], { models }));
  const rows: [name: string, usage: ModelUsage, cost: number][] = [
    ["no details", USAGE, COST],
    ["details of null", { ...USAGE, prompt_tokens_details: null, completion_tokens_details: null }, COST],
    [
      "400 of 1,000 cached, 200 of 500 for reasoning",
      {
        ...USAGE,
        prompt_tokens_details: { cached_tokens: 400, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 200, accepted_prediction_tokens: null },
      },
      0.049,
    ],
    ["more cached than sent", { ...USAGE, prompt_tokens_details: { cached_tokens: 1001 } }, 0.065005],
    [
      "more reasoning than output",
      { ...USAGE, completion_tokens_details: { reasoning_tokens: 501 } },
      0.0951,
    ],
    ["details that are no numbers", { ...USAGE, prompt_tokens_details: { cached_tokens: "400" } }, COST],
    ["an input above the tier", { prompt_tokens: 2000, completion_tokens: 500 }, 0.09],
  ];
  const ADDED: Record<string, readonly number[]> = {
    "more cached than sent": [2001, 500],
    "more reasoning than output": [1000, 1001],
  };
  for (const [name, reported, cost] of rows) {
    model.reply = () => ({ content: JSON.stringify(GOOD), usage: reported });
    const { usage } = await dataOf(composeRecap(app));
    const [input, output] = ADDED[name] ?? [reported.prompt_tokens, 500];
    assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.costCents], [input, output, cost], name);
  }
});

Deno.test("the model is asked once, with the key, the schema and the type's settings", async () => {
  const app = await composeApp(
    service,
    catalogOf([typeOf("recap", "Recap for {name}.", { maxOutputTokens: 77, temperature: 0.5 })]),
  );
  await dataOf(composeRecap(app));
  assert.equal(model.requests.length, 1);
  const [{ method, path, authorization, body }] = model.requests as [typeof model.requests[number]];
  assert.deepEqual([method, path, authorization], ["POST", "/v1/chat/completions", `Bearer ${MODEL_KEY}`]);
  assert.deepEqual([body.model, body.max_completion_tokens, body.temperature], ["mini", 77, 0.5]);
  const { type, json_schema: { name, schema, strict } } = body.response_format;
  assert.deepEqual([type, name, strict], ["json_schema", "recap", true]);
  assert.deepEqual(schema.required, ["headline", "score"]);
  assert.deepEqual(body.messages.map(({ role }: { role: string }) => role), ["system", "user"]);
});

Deno.test("strict mode is asked for only where the schema fits it", async () => {
  const member = { type: "string" };
  const closed = { type: "object", properties: { a: member }, required: ["a"], additionalProperties: false };
  const rows: [schema: Record<string, unknown>, isStrict: boolean][] = [
    [closed, true],
    [{ ...closed, properties: { a: closed } }, true],
    [{ ...closed, required: [] }, false],
    [{ type: "object", properties: { a: member }, required: ["a"] }, false],
    [{ ...closed, properties: { a: { type: "string", minLength: 1 } } }, false],
    [{ ...closed, properties: { a: { type: "array", items: { type: "object" } } } }, false],
    [{}, false],
  ];
  for (const [outputSchema, isStrict] of rows) {
    model.reset();
    model.reply = () => ({ content: '{"a":"text"}' });
    const app = await composeApp(service, catalogOf([typeOf("recap", "Go.", { outputSchema })]));
    await composeRecap(app);
    const note = JSON.stringify(outputSchema);
    assert.equal(model.requests[0]?.body.response_format.json_schema.strict, isStrict, note);
  }
});

const MISMATCHES: [name: string, reply: ModelReply, isPaid: boolean][] = [
  ["text that is no JSON", { content: "Well done" }, true],
  ["JSON that is cut off", { content: '{"headline":"Well' }, true],
  ["a missing member", { content: '{"headline":"x"}' }, true],
  ["a member of another type", { content: '{"headline":"x","score":"7"}' }, true],
  ["a member too many", { content: '{"headline":"x","score":7,"more":1}' }, true],
  ["a list", { content: `[${JSON.stringify(GOOD)}]` }, true],
  ["null", { content: "null" }, true],
  ["no text", { content: null }, true],
  ["no usage figures", { content: JSON.stringify(GOOD), usage: null }, false],
  [
    "usage figures below zero",
    { content: JSON.stringify(GOOD), usage: { prompt_tokens: -1, completion_tokens: 5 } },
    false,
  ],
  [
    "usage figures that are not whole",
    { content: JSON.stringify(GOOD), usage: { prompt_tokens: 1.5, completion_tokens: 5 } },
    false,
  ],
  [
    "details of the usage that are not whole",
    {
      content: JSON.stringify(GOOD),
      usage: {
        prompt_tokens: 5,
        completion_tokens: 5,
        completion_tokens_details: { reasoning_tokens: 5.5 },
      },
    },
    false,
  ],
  ["JSON that is no completion", { status: 200, body: '{"choices":"none"}' }, false],
];

for (const [name, reply, isPaid] of MISMATCHES) {
  Deno.test(`${name}: asked again once, and only the answer that matches is metered`, async () => {
    const app = await composeApp(service);
    model.reply = (_, place) => place === 0 ? reply : good;
    const { output, usage } = await dataOf(composeRecap(app));
    assert.deepEqual(output, GOOD);
    assert.equal(usage.costCents, COST);
    assert.equal(model.requests.length, 2);
    assert.deepEqual(await countsOf(app), { lg_tokens: 1500, lg_calls: 1 });
    assert.equal((await rowsOf(service, app, "generations")).length, 1);
    assert.equal(await spentOf(service, app), isPaid ? 2 * COST : COST);
  });

  Deno.test(`${name} twice: the generation failed, nothing is metered, and what was reported is paid`, async () => {
    const app = await composeApp(service);
    model.reply = () => reply;
    assertRefused(await composeRecap(app), 502, "generation_failed");
    assert.equal(model.requests.length, 2);
    await assertNothingMetered(app, isPaid ? 2 * COST : 0);
  });
}

const FAILURES: [name: string, reply: ModelReply][] = [
  ["a redirect", { status: 307, body: "", headers: { location: "/elsewhere" } }],
  ["an error of the server", { status: 500, body: '{"error":{"message":"down"}}' }],
  ["a refused key", { status: 401, body: JSON.stringify({ error: { message: `Bad key ${MODEL_KEY}` } }) }],
  ["too many requests", { status: 429, body: '{"error":{"message":"slow down"}}' }],
  ["a refused question", { status: 400, body: '{"error":{"message":"Recap for Ada is not allowed"}}' }],
  ["a connection that drops before the answer", { drop: "before" }],
  ["a connection that drops within the answer", { drop: "within" }],
  ["a body that is no JSON", { status: 200, body: "<html>" }],
];

for (const [name, reply] of FAILURES) {
  Deno.test(`${name}: the generation failed without a second call, and nothing is metered`, async () => {
    const app = await composeApp(service);
    model.reply = () => reply;
    const answer = await composeRecap(app);
    assertRefused(answer, 502, "generation_failed");
    assert.doesNotMatch(JSON.stringify(answer.body), new RegExp(`${MODEL_KEY}|Ada|down`));
    assert.equal(model.requests.length, 1);
    await assertNothingMetered(app, 0);
    model.reply = () => good;
    await dataOf(composeRecap(app));
  });
}

Deno.test("a failure after a mismatch pays for the mismatch alone", async () => {
  const app = await composeApp(service);
  model.reply = (_, place) => place === 0 ? { content: "{}" } : { status: 500, body: "{}" };
  assertRefused(await composeRecap(app), 502, "generation_failed");
  await assertNothingMetered(app, COST);
});

Deno.test("an answer without tokens is metered as one call that cost nothing", async () => {
  const app = await composeApp(service);
  model.reply = () => ({ ...good, usage: { prompt_tokens: 0, completion_tokens: 0 } });
  const { usage } = await dataOf(composeRecap(app));
  assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.costCents], [0, 0, 0]);
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_calls: 1 });
});

Deno.test("whatever text the model answers comes through unchanged, and is logged", async () => {
  const app = await composeApp(service);
  const hostile = { headline: 'a\u0000b \ud800 "quoted" \\N\t\n<data> é 🎉', score: 1 };
  model.reply = () => ({ content: JSON.stringify(hostile) });
  const { output, usage } = await dataOf(composeRecap(app));
  assert.deepEqual(output, hostile);
  const { response } = await dataOf(app.call("GET", `/events/${usage.eventId}`));
  assert.deepEqual(JSON.parse(response), hostile);
});

Deno.test("a schema of draft 7 is read as one, and formats are annotations", async () => {
  const outputSchema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: {
      pair: { type: "array", items: [{ type: "string", format: "email" }, { type: "integer" }] },
    },
    required: ["pair"],
  };
  const app = await composeApp(service, catalogOf([typeOf("recap", "Go.", { outputSchema })]));
  model.reply = (_, place) => ({ content: place === 0 ? '{"pair":["x","y"]}' : '{"pair":["x",1]}' });
  assert.deepEqual((await dataOf(composeRecap(app))).output, { pair: ["x", 1] });
  assert.equal(model.requests.length, 2);
});

Deno.test("an answer that is nested too deeply to be checked does not match", async () => {
  const outputSchema = { type: "object", properties: { a: { $ref: "#" } } };
  const app = await composeApp(service, catalogOf([typeOf("recap", "Go.", { outputSchema })]));
  const deep = `${'{"a":'.repeat(100_000)}{}${"}".repeat(100_000)}`;
  model.reply = (_, place) => ({ content: place === 0 ? deep : '{"a":{"a":{}}}' });
  assert.deepEqual((await dataOf(composeRecap(app))).output, { a: { a: {} } });
  assert.equal(model.requests.length, 2);
});

Deno.test("a schema that cannot be used is a fault of its catalog, and a large one is compiled in time", async () => {
  const manyObjects = { anyOf: Array.from({ length: 1_000 }, () => ({})) };
  for (const outputSchema of [{ type: "nothing" }, { $ref: "#/$defs/none" }, manyObjects]) {
    const app = await service.newApp();
    const document = catalogOf([typeOf("fine", "Go."), typeOf("recap", "Go.", { outputSchema })]);
    for (const query of ["", "?dryRun=true"]) {
      const refused = await service.admin("PUT", `/apps/${app.appId}/catalog${query}`, document);
      const { details } = assertRefused(refused, 400, "invalid_request");
      assert.deepEqual((details as { path: string }[]).map(({ path }) => path), [
        "composeTypes[1].outputSchema",
      ]);
    }
  }
  // With its references written out, this one takes the better part of a minute.
  const group = {
    properties: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`p${n}`, { type: "string" }])),
  };
  const outputSchema = {
    $defs: { group },
    allOf: Array.from({ length: 300 }, () => ({ $ref: "#/$defs/group" })),
  };
  await composeApp(service, catalogOf([typeOf("recap", "Go.", { outputSchema })]));
});

Deno.test("a schema that an older catalog has and that cannot be used fails before any call", async () => {
  const app = await composeApp(service);
  await service.store.database.query(
    `update catalogs set document = replace(document, '"headline":{"type":"string"}', '"headline":{"type":"text"}')
     where app_id = $1`,
    [app.appId],
  );
  await service.restart();
  assertRefused(await composeRecap(app), 502, "generation_failed");
  assert.equal(model.requests.length, 0);
});

Deno.test("the usage that is metered is the model's, not a count of our own", async () => {
  const app = await composeApp(service);
  model.reply = () => ({
    ...good,
    usage: { prompt_tokens: 3, completion_tokens: USAGE.completion_tokens + 1 },
  });
  const { usage } = await dataOf(composeRecap(app));
  assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.costCents], [3, 501, 0.030105]);
  assert.equal((await countsOf(app)).lg_tokens, 504);
});
