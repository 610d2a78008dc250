// The container file and the compose file, as far as they can be proved without a container engine: what they copy and
// cache is there, the program runs with the start task's flags, and the program knows every variable.

import assert from "node:assert/strict";
import manifest from "../../src/operations/package/npm.json" with { type: "json" };
import { readConfig, SETTING_NAMES } from "../../src/process/settings.ts";
import { startArguments } from "../crash/program.ts";
import { WORKERS } from "./workers.ts";

const ROOT = new URL("../..", import.meta.url);
const FOLDER = new URL("src/operations/", ROOT);
const containerfile = await Deno.readTextFile(new URL("Containerfile", FOLDER));
const compose = await Deno.readTextFile(new URL("compose.yaml", FOLDER));

/** The arguments of an instruction, one entry a line of the file. */
function instructions(name: string): string[] {
  const lines = containerfile.replaceAll("\\\n", " ").split("\n");
  return lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
}

async function assertThere(path: string): Promise<void> {
  assert.ok(await Deno.stat(new URL(path, ROOT)).then(() => true, () => false), path);
}

Deno.test("the image copies and caches what is there, the program's workers among it", async () => {
  const copied = instructions("COPY").filter((line) => !line.startsWith("--from"))
    .flatMap((line) => line.split(" ").slice(0, -1));
  assert.ok(
    ["src", "actors", "routes", "sql", "deno.json", "deno.lock"].every((path) => copied.includes(path)),
  );
  const cached = instructions("RUN").flatMap((line) => line.split(" ")).filter((word) =>
    word.endsWith(".ts")
  );
  for (const path of ["src/main.ts", ...WORKERS]) assert.ok(cached.includes(path), path);
  for (const path of [...copied, ...cached]) await assertThere(path);
});

Deno.test("the image runs the program with the flags of the start task, by the runtime that the package has", () => {
  const [entry = "[]"] = instructions("ENTRYPOINT");
  const [, ...args] = JSON.parse(entry) as string[];
  const expected = startArguments().map((arg) => arg === "src/main.ts" ? "/holdfast/src/main.ts" : arg);
  assert.deepEqual(args.filter((arg) => !["--cached-only", "--frozen"].includes(arg)), expected);
  assert.ok(containerfile.includes(` deno@${manifest.dependencies.deno} `));
});

Deno.test("the compose file builds that image and sets variables that the program knows", async () => {
  const [, context = "", path = ""] = /context: (\S+)\n\s+dockerfile: (\S+)/.exec(compose) ?? [];
  assert.equal(new URL(`${context}/`, FOLDER).href, ROOT.href);
  await assertThere(path);
  const [, service = ""] = compose.split("\n  holdfast:\n");
  const [, environment = ""] = /environment:\n((?: {6}.*\n)+)/.exec(service) ?? [];
  const names = [...environment.matchAll(/^ {6}(\w+):/gm)].map(([, name]) => name as string);
  assert.ok(names.includes("DATABASE_URL") && names.includes("HOLDFAST_ADMIN_TOKEN"));
  assert.deepEqual(names.filter((name) => !SETTING_NAMES.includes(name)), []);
});

Deno.test("the file of three members sets known variables, and the balancer asks each of them whether it is ready", async () => {
  const cluster = await Deno.readTextFile(new URL("cluster.compose.yaml", FOLDER));
  const balancer = await Deno.readTextFile(new URL("haproxy.cfg", FOLDER));
  const [, settings = ""] = /x-settings: &settings\n((?: {2}.*\n)+)/.exec(cluster) ?? [];
  const names = [...settings.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name as string);
  assert.ok(names.includes("DATABASE_URL") && names.includes("HOLDFAST_ADMIN_TOKEN"));
  assert.deepEqual(names.filter((name) => !SETTING_NAMES.includes(name)), []);
  const members = [...cluster.matchAll(/^ {2}(\w+):\n {4}<<: \*member\n.*\n.*\n {6}(\w+): (\S+)$/gm)]
    .map(([, name, variable, address]) => [name, variable, address]);
  assert.equal(members.length, 3);
  for (const [name, variable, address] of members) {
    assert.deepEqual([variable, address], ["HOLDFAST_CLUSTER_ADDRESS", `${name}:7000`]);
  }
  const asked = [...balancer.matchAll(/^ {2}server (\w+) (\S+)$/gm)].map(([, name, at]) => [name, at]);
  assert.deepEqual(asked, members.map(([name]) => [name, `${name}:8000`]));
  assert.match(balancer, /option httpchk GET \/readyz\n/);
  // What is for operators stays inside, in an escaped form too, and they have a port of their own.
  assert.match(
    balancer,
    /^ {2}http-request deny deny_status 404 if \{ path,url_dec -m beg \/metrics \/api\/admin \/console \}$/m,
  );
  assert.match(balancer, /frontend operators\n {2}bind :8001\n/);
  assert.match(cluster, /- 127\.0\.0\.1:8001:8001\n/);
  // A call that a member has read is sent again by its caller alone.
  assert.match(balancer, /retry-on conn-failure\n/);
});

Deno.test("the units for systemd set variables that the program knows, and those of one machine have addresses of their own", async () => {
  for (const name of ["holdfast.service", "holdfast@.service"]) {
    const unit = await Deno.readTextFile(new URL(name, FOLDER));
    const set = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => line?.split(" ") ?? [])
      .map((text) => text.split("=") as [string, string]);
    assert.deepEqual(set.filter(([variable]) => !SETTING_NAMES.includes(variable)), [], name);
    const of = (instance: number) =>
      readConfig(
        Object.fromEntries(set.map(([variable, value]) => [variable, value.replace("%i", `${instance}`)])),
      );
    const isMany = name.includes("@");
    assert.equal(of(1).sharesPort, isMany);
    assert.equal(of(1).clusterAddress !== of(8).clusterAddress, isMany);
  }
});
