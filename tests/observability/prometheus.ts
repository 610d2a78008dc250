// Reads Prometheus text, version 0.0.4, strictly: what a scraper would reject is an error here.

import assert from "node:assert/strict";

/** A metric family as the text has it. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = /^[a-z_][a-z0-9_]*$/;
const SAMPLE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/;

/** The families of a text, by name. */
export function parsePrometheus(text: string): Map<string, Family> {
  assert.ok(text.endsWith("\n"), "the text ends with a line break");
  const families = new Map<string, Family & { samples: Sample[] }>();
  const lines = text.split("\n").filter((line) => line !== "");
  let family: (Family & { samples: Sample[] }) | null = null;
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as string;
    if (!line.startsWith("#")) {
      assert.ok(family !== null, `a sample before its family: ${line}`);
      family.samples.push(sampleOf(line, family));
      continue;
    }
    const [, name = "", help = ""] = /^# HELP (\S+) (\S.*)$/.exec(line) ?? assert.fail(line);
    const typeLine = lines[++index] as string;
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(typeLine) ??
      assert.fail(typeLine);
    assert.equal(typed, name, "the type follows the help of the same metric");
    assert.match(name, NAME);
    assert.ok(!families.has(name), `${name} stands twice`);
    family = { name, help, type: type as Family["type"], samples: [] };
    families.set(name, family);
  }
  for (const each of families.values()) checkFamily(each);
  return families;
}

function sampleOf(line: string, family: Family): Sample {
  const [, name = "", inBraces = "", written] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
  const suffix = name.slice(family.name.length);
  const suffixes = family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  assert.ok(name.startsWith(family.name) && suffixes.includes(suffix), `${name} in ${family.name}`);
  const labels: Record<string, string> = {};
  for (let rest = inBraces; rest !== "";) {
    const [whole, label = "", value = ""] = LABEL.exec(rest) ?? assert.fail(`no label: ${rest} in ${line}`);
    assert.ok(!Object.hasOwn(labels, label), `a label stands twice: ${line}`);
    labels[label] = value;
    rest = rest.slice(whole.length);
  }
  const value = Number(written);
  assert.ok(Number.isFinite(value), `no number: ${line}`);
  return { name, labels, value };
}

function checkFamily({ name, type, samples }: Family): void {
  const series = samples.map((sample) => `${sample.name}${JSON.stringify(sample.labels)}`);
  assert.equal(new Set(series).size, series.length, `${name}: a series stands twice`);
  assert.equal(
    type === "counter",
    name.endsWith("_total"),
    `${name}: counters, and only they, end in _total`,
  );
  if (type !== "gauge") assert.ok(samples.every(({ value }) => value >= 0), name);
}

/** The sum of the samples of a metric that have these labels; 0 when there are none. */
export function total(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
  assert.ok(family !== undefined, `there is no metric ${name}`);
  return family.samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
