// The chart and the plain manifests for Kubernetes, as far as they can be proved without a cluster: both say the same, and
// the program knows what they set.

import assert from "node:assert/strict";
import { SETTING_NAMES } from "../../src/process/settings.ts";

const FOLDER = new URL("../../src/operations/kubernetes/", import.meta.url);
const read = (path: string) => Deno.readTextFile(new URL(path, FOLDER));
const [members, access, values, plain] = await Promise.all(
  ["chart/templates/members.yaml", "chart/templates/access.yaml", "chart/values.yaml", "holdfast.yaml"].map(
    read,
  ),
) as [string, string, string, string];

/** Puts the default values into a template, with the few forms that these templates use. */
function render(template: string): string {
  const [, resources = ""] = /^resources:\n((?: .*\n)+)/m.exec(values) ?? [];
  const valueOf = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(values)?.[1] ?? "";
  return template
    .replace(/ *\{\{- range[\s\S]*\{\{- end \}\}\n/, "")
    .replace(
      " {{- toYaml .Values.resources | nindent 12 }}",
      `\n${resources.trimEnd().replace(/^ {2}/gm, " ".repeat(12))}`,
    )
    .replace(/\{\{ \.Values\.(\w+)( \| quote)? \}\}/g, (_, name, quoted) => {
      return quoted === undefined ? valueOf(name) : JSON.stringify(valueOf(name));
    });
}

Deno.test("the plain manifests are the chart with its default values", () => {
  for (const template of [members, access]) {
    for (const document of render(template).split("\n---\n")) {
      assert.ok(plain.includes(document.trim()), document);
    }
  }
  assert.equal(plain.match(/^kind: /gm)?.length, `${members}${access}`.match(/^kind: /gm)?.length);
});

Deno.test("the processes get known settings alone, an address of their own and no variables of services", () => {
  const names = [...plain.matchAll(/- name: ([A-Z_]+)$/gm)].map(([, name]) => name as string);
  assert.deepEqual(
    names.filter((name) => !SETTING_NAMES.includes(name)),
    ["POD_NAME", "POD_NAMESPACE"],
  );
  assert.match(
    plain,
    /value: \$\(POD_NAME\)\.holdfast-members\.\$\(POD_NAMESPACE\)\.svc\.cluster\.local:7000\n/,
  );
  // Variables such as HOLDFAST_PORT of a Service would stop the start.
  assert.match(plain, /enableServiceLinks: false\n/);
  assert.match(plain, /path: \/readyz\n/);
  assert.match(plain, /path: \/healthz\n/);
});
