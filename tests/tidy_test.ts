// The structure of the project as tests. A rule that only a document states is forgotten; these run with every suite.
// Here: sizes, purity of the domain, landed migrations, permissions of tasks. Beside it, in structure/: imports and
// layers, words, and what the READMEs promise.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { MIGRATIONS } from "../sql/migrations.ts";
import "./structure/imports.ts";
import "./structure/english.ts";
import "./structure/words.ts";
import "./structure/documents.ts";
import "./structure/fences.ts";
import { FOLDERS, sourceFiles, textOf } from "./structure/sources.ts";

const FILE_LINES_MAX = 450;
/** Files that a task writes may be longer. */
const GENERATED = ["src/client/wire_types.ts"];

Deno.test("files stay short and open with what they own", async () => {
  const faults: string[] = [];
  for (const path of await sourceFiles(...FOLDERS)) {
    const text = await textOf(path);
    const lines = text.split("\n").length;
    if (lines > FILE_LINES_MAX && !GENERATED.includes(path)) faults.push(`${path}: ${lines} lines`);
    if (!text.startsWith("// ")) faults.push(`${path}: does not open with what it owns`);
    if (/^export \* from/m.test(text)) faults.push(`${path}: is a barrel`);
  }
  assert.deepEqual(faults, []);
});

Deno.test("the domain has no await, no clock and no chance", async () => {
  const banned = [
    /\bawait\b/,
    /\basync\b/,
    /Date\.now/,
    /new Date\(\)/,
    /Temporal\.Now/,
    /Math\.random/,
    /\bDeno\./,
    /crypto\./,
  ];
  const faults: string[] = [];
  for (const path of await sourceFiles("src/domain")) {
    const code = (await textOf(path)).replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, "");
    faults.push(...banned.filter((pattern) => pattern.test(code)).map((pattern) => `${path}: ${pattern}`));
  }
  assert.deepEqual(faults, []);
});

Deno.test("SQL is written in storage and sql alone", async () => {
  const statement =
    /[`"]\s*(select\s+[\w*(]|insert into \w|update \w+( \w+)? set |delete from \w|create (temp )?table |alter table |(with|with recursive) [\w()]+ as )/i;
  const faults: string[] = [];
  for (const path of await sourceFiles("src", "actors", "routes")) {
    if (/^src\/storage\//.test(path)) continue;
    const found = statement.exec(await textOf(path));
    if (found !== null) faults.push(`${path}: ${found[0].trim()}`);
  }
  assert.deepEqual(faults, []);
});

Deno.test("landed migrations are never edited", () => {
  const landed: Record<string, string> = {
    "0001_core": "2a0e841b97075a9de1bd7ef141ea57d14a1280f137deb058600894e589658364",
    "0002_credits": "c017099454c56448e109283d4508ff479a990aa83f531f14ea4d3e37334ebded",
    "0003_aliases": "b55020bf5615249024743a864b132d19e4ecb14643f3a4986c273475be1f53b3",
    "0004_logs": "b09558bb9962605e337facf331d2f388ec37f0307ba01cdeef65310508015879",
    "0005_people": "9e0076e9a7134799c4f764ac23cba34e2715c83492c49c4c99c2395387684f17",
    "0006_compose": "f346fc648722a33b172c6fab1e3f4206a956257c5bd831734c68f345529e2b5c",
    "0007_large_tables": "2c38a00dbb25475dc8ade7f04b8013205c3246a2ad13dbfe4e77b89cde2c1355",
    "0008_moved_rows": "e30d6f5fd89a9b53db50e81795217a0545589e08817f63d42266cfc64c150493",
    "0009_charges": "72707f413f2ef436a5035a3e56d54264b58bd0a553a72453b12c64e3e8022a0c",
    "0010_identity_secrets": "bae78ea9e9f47c78678138b84b8f0b2eeb3f5ecdf7ecdffdb46de941b199da1c",
    "0011_prices": "bef37dd98b1058fceef6ca8913354cc0c919d8490d151a07de423e757e26a8c7",
    "0012_members": "c3030bfcccd05ff8fa1889586febfd1ee2fea5d2b43c3ce921c8d10c88e48676",
    "0013_refusals": "1bbcac327bd5e12d12a86752ba21b3023ad3c05dea496dc36c15532a08cce95f",
    "0014_webhooks": "884eb3249c6d202d96091a89c11c4d12680f0b6aa9de9edcf0ad895a2912c332",
    "0015_console": "73d026ed068e98f0307e8aa03e195ec872068785fc5dd498f7b5914f06c038a0",
    "0016_daily_use": "62612ec9a51cafbe499532b60757e55161778320e3e4b8836e2f438431922687",
    "0017_references": "5af8a3115199933c5004d54ee185e06e4a2ac9430d7cf742d71261f0ee8414cf",
    "0018_stripe": "97d9f352a37d79ebb30448c1d320dcceea887ad303f74d4dc81ea7a8fd78df06",
    "0019_less_log": "23dff3f2a84c8f42ca3b64992d1efbae0e26f86b779b6d6929e0483b3089cb28",
    "0020_open_holds": "28b1a95d0a64737ecd11ebef059cde51b50cd48fb9cf70b5bcbb050ed247fe15",
    "0021_person_links": "71b299bad04fbf223e8aaf03c7bed8dae2c2f40cbd49255155ba9c09bc7e3e6b",
    "0022_failed_sign_ins": "02685035c5cfda9e4a11cfd10e03da9a60e8b9ac8b228cd053a6bb7dbc7c5f5a",
    "0023_gateway_spend": "083c4e3b20657374395b96c381c1fb83c27eb4adaf52e85d0a58c2e8e47c3e88",
    "0024_stripe_money": "365a1978e6c2fe7608a4e232ea8586a5fd7c6ca660701f569e965616347ae174",
    "0025_carried_counters": "467384f24e5a3a0cabcadee7596298ce81192bd2853bde31e4fac16bd6c1c467",
    "0026_accounts": "0f543bab86a50eeeff3c1dbe66ebf2e9696f3532c68835ead5b54cb662c822d6",
    "0027_runs": "dab743a169eb3f6e1b3400b61a1b3c68e2f083af1aa3016d6ecab4230baa4ed6",
    "0028_user_keys": "7e68f1c2a1730239406d5af91678999d77f7af9c181a497ad8eba0fe3372394e",
    "0029_shares": "d424f81a7b3a1f16ae7b56d8c2d4d550411cfec081066d17c56c58187a26e1ae",
    "0030_windows": "1627885b946265cf80c96dd48cf2d83b031908f1d96a35407323b297f356e21f",
    "0031_features": "48294a50de0dbae95350e6f0c9796e6095aeb1af307dd6de559dcde98d42a8ac",
    "0032_trials": "b2104734e2bdad7e1b586dc91aa5955c897e409686fe4131dc070059baa6e56c",
    "0033_rates": "eec736598035e5622b2eceaf9dc50be7105853b7a38ed4456cbccaa7c7075027",
    "0034_included_credits": "3008a5192cb73c34edebf80d8e0b0ff1eb382f736ea6707aadb405ccef3a18df",
    "0035_top_ups": "8bcfbbb23f049ba05df90cf3e47a085a34249ca258f5a1cc763ffd980daf394b",
    "0036_overage": "03531a4711d5e8ce58d364336eede6ff3be7f55b8e813ae7a2136503b19f3895",
    "0037_readers": "0afc3ab9d0828126c5f9cfc3193392b8e8455610e2cfdce264038256df2284bd",
    "0038_views": "4ced3aa0a89272305f26de1379c241de61fe1e77f459c9ab1864f18689c0b975",
    "0039_user_lists": "7740d6b0e06007f14404fa258efd27a248ce0cc7ffe3856545d84dfd68c3b590",
    "0040_daily_parts": "5a8c6bf6ca84d9ec58d493234e2ce3bc0af1f69c4ddb8db6d8e4a399f09bf495",
    "0041_agent_grants": "250741ef06e51e8d1377a54d5ebe71b2d0ef92167627ae94a4b574931a06eb17",
    "0042_failed_requests": "b91c433039f652bb9acabd594ba8951051c680c7f30410e97ef2183e81910141",
    "0043_key_use": "755eeba9e5345824319bb77db700222c0d0b2925f18a9c2092f024e017c6d02e",
    "0044_attempts": "95b04001f6516e1f086c534d23b0e375917085617feb7e00e32d283a2abd0520",
    "0045_catalog_versions": "7431dea3c1f23d80d86a232ecf7f463c5753074f2411a29a982a25ec931bf1bf",
    "0046_work": "a9d96c6860e8e6016ba12d6d1f8aee1eb1cfb41cbb1acddd9d5c34333bf14931",
    "0048_stores": "26e304e9371681b19f6d09afb563e353297b96ce7d3bf85b64eac8e5a80e9f93",
    "0049_overage_ends": "97683f75c6ba8d4db293d835fd728ddd618cc00b903406f0db7b2847c5556c7d",
    "0050_splits": "6c471a4591ffaa841ddbc8c20818bc808be671b3d39e575f4e3a1965752ce5f8",
    "0051_console_lists": "a202ae34153d7be6db0d01227b094ca422896d7b0f8d35a79a9116d44a8b6e58",
    "0052_parents_in_views": "e3221004ee30e9f9cb2552b25c11f4cc9025bfebbe3286600bd3629769d7fbc9",
  };
  for (const { name, sql } of MIGRATIONS) {
    const known = landed[name];
    assert.ok(known !== undefined, `Add the checksum of "${name}" to this list`);
    assert.equal(createHash("sha256").update(sql).digest("hex"), known, `"${name}" has changed`);
  }
});

Deno.test("tasks list their permissions", async () => {
  const { tasks } = JSON.parse(await textOf("deno.json")) as {
    tasks: Record<string, string>;
  };
  for (const [name, command] of Object.entries(tasks)) {
    assert.ok(!/(^|\s)(-A|--allow-all)(\s|$)/.test(command), `The task "${name}" allows everything`);
  }
});
