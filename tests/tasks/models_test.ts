// `deno task admin models import` against a real service: what it shows, what it applies, and what it leaves alone.

import assert from "node:assert/strict";
import catalog from "../../src/tenant/demo/catalog.json" with { type: "json" };
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { operatorOf, runTask, type ServedService, testShell, withFile, withService } from "./support.ts";

const EXTRACT = new URL("data/litellm_prices.json", import.meta.url).pathname;
const ROWS = [
  { ...catalog.models[0], cachedInputCentsPerMillionTokens: 3, outputCentsPerMillionTokens: 55 },
  { id: "flux-pro", modality: "image", amountMode: "per_call", centsPerCall: 5 },
];

async function admin(service: ServedService, ...args: string[]) {
  const { shell, out, err } = testShell(operatorOf(service));
  return { code: await runAdmin(args, shell), out: out(), err: err() };
}

async function inForce(service: ServedService, appId: string) {
  return (await service.admin("GET", `/apps/${appId}/catalog`)).body.data;
}

Deno.test("an import shows the differences, applies them like a catalog, and leaves the rest alone", async () => {
  await withService(async (service) => {
    const { appId } = await service.newApp({ ...catalog, models: ROWS, composeTypes: [] });
    const before = await inForce(service, appId);
    const dryRun = await runTask("admin", ["models", "import", EXTRACT, "--dry-run"], operatorOf(service));
    const table = [
      "MODEL        MEMBER                            OLD  NEW",
      "gpt-4o-mini  cachedInputCentsPerMillionTokens    3  7.5",
      "gpt-4o-mini  outputCentsPerMillionTokens        55   60",
      "Not in the file, unchanged: flux-pro",
    ].join("\n");
    assert.deepEqual(dryRun, {
      code: EXIT.ok,
      err: "",
      out: `${table}\nDry run: version 1 stays in force\n`,
    });
    assert.deepEqual(await inForce(service, appId), before);

    const { code, out } = await admin(service, "models", "import", EXTRACT);
    assert.deepEqual([code, out], [EXIT.ok, `${table}\nVersion 2 is in force`]);
    const { models: [row, other], ...rest } = await inForce(service, appId);
    const { checkedAt, ...prices } = row;
    assert.deepEqual(prices, { ...catalog.models[0], source: "litellm" });
    assert.ok(Math.abs(Date.now() - Date.parse(checkedAt)) < 60_000);
    assert.deepEqual(other, ROWS[1]);
    assert.deepEqual(rest.plans, before.plans);

    const again = await admin(service, "models", "import", EXTRACT, "--only", "gpt-4o-mini");
    assert.match(
      again.out,
      /^No price differs\nThe same price as in the file: gpt-4o-mini\nVersion 3 is in force$/,
    );
  });
});

Deno.test("models of --only are added, and models missing in the file are listed without a failure", async () => {
  await withService(async (service) => {
    const { appId } = await service.newApp({ models: ROWS });
    const only = ["--only", "claude-sonnet-4-5, nowhere", "--only", "whisper-1", "--app", appId];
    const { code, out } = await admin(service, "models", "import", EXTRACT, ...only, "--json");
    assert.equal(code, EXIT.ok);
    const { version, differences, imported, missing, unpriced } = JSON.parse(out);
    assert.deepEqual([version, imported, missing, unpriced], [2, ["claude-sonnet-4-5", "whisper-1"], [
      "nowhere",
    ], []]);
    assert.deepEqual(differences.at(-1), {
      model: "whisper-1",
      member: "centsPerSecond",
      before: null,
      after: 0.01,
    });
    const { models } = await inForce(service, appId);
    assert.deepEqual(models.map(({ id }: { id: string }) => id), [
      ...ROWS.map(({ id }) => id),
      "claude-sonnet-4-5",
      "whisper-1",
    ]);
    const none = await admin(service, "models", "import", EXTRACT, "--only", "nowhere");
    assert.deepEqual([none.code, none.out.split("\n").at(-1)], [
      EXIT.ok,
      "Nothing to apply: version 2 stays in force",
    ]);
  });
});

Deno.test("a file that is no price file, a row with a fault and a catalog that has moved are refused", async () => {
  await withService(async (service) => {
    const { appId } = await service.newApp({ models: ROWS });
    const files = [
      ["{", /is not JSON/],
      ["[5]", /is not a price file of LiteLLM, and not a list or object of models$/],
      [
        '{"flux-pro":{"output_cost_per_image":-4}}',
        /nothing was applied:\n {2}flux-pro.output_cost_per_image must/,
      ],
      [
        '{"flux-pro":{"amountMode":"per_call","centsPerImage":4}}',
        /PATH +FAULT\nmodels\[1\]\.centsPerImage +excludes/,
      ],
    ] as const;
    for (const [text, message] of files) {
      await withFile("prices.json", text, async (file) => {
        const { code, err } = await admin(service, "models", "import", file);
        assert.equal(code, EXIT.refused);
        assert.match(err, message);
      });
    }
    assert.equal((await inForce(service, appId)).version, 1);
    assert.equal((await admin(service, "models", "import", "/none/prices.json")).code, EXIT.usage);
  });
});

Deno.test("--builtin imports the prices of this version, with their dates", async () => {
  await withService(async (service) => {
    const { appId } = await service.newApp({ models: ROWS });
    const { code, out } = await admin(
      service,
      "models",
      "import",
      "--builtin",
      "--only",
      "gpt-4o-mini,gpt-4.1",
    );
    assert.equal(code, EXIT.ok);
    assert.match(out, /^gpt-4\.1 +inputCentsPerMillionTokens +- +200$/m);
    const { models } = await inForce(service, appId);
    const [mini, , added] = models;
    assert.deepEqual([mini.outputCentsPerMillionTokens, mini.aliases], [60, ["gpt-4o-mini-20*"]]);
    assert.deepEqual([added.id, added.source, added.checkedAt], [
      "gpt-4.1",
      "litellm",
      "2026-07-24T00:00:00.000Z",
    ]);
    for (const args of [["models", "import"], ["models", "import", EXTRACT, "--builtin"]]) {
      assert.equal((await admin(service, ...args)).code, EXIT.usage);
    }
  });
});
