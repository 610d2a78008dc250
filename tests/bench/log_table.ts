// The bytes of log as text: a line for each scenario, then what each table and index takes of it for each call.
import { aligned, number } from "./text_table.ts";
import type { LogPart, LogRow, Writer } from "./log_bytes.ts";

/** Relations that take less for each call share one line. */
const SMALL_BYTES = 2;

/** Bytes of records, and of the images of pages that they carry. */
interface Sum {
  readonly records: number;
  readonly bytes: number;
  readonly imageBytes: number;
}

/** The rows as text. */
export function logTable(rows: readonly LogRow[]): string[] {
  return rows.flatMap((row) => [...logLines(row), ""]).slice(0, -1);
}

/** One scenario: the totals, then a table of relations. */
function logLines(row: LogRow): string[] {
  const { calls, users, counted, serverBytes, parts } = row;
  const each = (bytes: number) => number(bytes / counted);
  const name = `log bytes a ${calls}, ${users}`;
  if (parts === null) {
    return [`${name}: ${each(serverBytes)} (${number(counted)} counted); journal and drain n/a`];
  }
  const part = (writer: Writer | null) => {
    const { bytes, imageBytes } = sumOf(parts.filter((each) => writer === null || each.writer === writer));
    return `${each(bytes)} (images ${each(imageBytes)})`;
  };
  return [
    `${name}: ${part(null)}: journal ${part("append")}, drain ${part("drain")}, other ${part("other")}; ` +
    `${number(counted)} counted`,
    ...aligned([HEAD, ...relationRows(parts, counted)], 1),
  ];
}

const HEAD = ["relation", "journal", "images", "drain", "images", "other", "records", "updates in page"];

function relationRows(parts: readonly LogPart[], counted: number): string[][] {
  const groups = [...Map.groupBy(parts, ({ relation, kind }) => relation ?? `(${kind})`)];
  const isSmall = ([, group]: (typeof groups)[number]) => sumOf(group).bytes / counted < SMALL_BYTES;
  const large = groups.filter((group) => !isSmall(group));
  const rest = groups.filter(isSmall);
  const rows = large.toSorted(([, a], [, b]) => sumOf(b).bytes - sumOf(a).bytes)
    .map(([name, group]) => relationRow(name, group, counted));
  if (rest.length > 0) {
    rows.push(relationRow(`(${rest.length} others)`, rest.flatMap(([, group]) => group), counted));
  }
  return rows;
}

function relationRow(name: string, group: readonly LogPart[], counted: number): string[] {
  const of = (writer: Writer) => sumOf(group.filter((part) => part.writer === writer));
  const each = (value: number) => (value / counted).toFixed(1);
  const [append, drain, other] = [of("append"), of("drain"), of("other")];
  return [
    name,
    each(append.bytes - append.imageBytes),
    each(append.imageBytes),
    each(drain.bytes - drain.imageBytes),
    each(drain.imageBytes),
    each(other.bytes),
    (sumOf(group).records / counted).toFixed(3),
    hotShare(group),
  ];
}

function sumOf(parts: readonly LogPart[]): Sum {
  let [records, bytes, imageBytes] = [0, 0, 0];
  for (const part of parts) {
    records += part.records;
    bytes += part.bytes;
    imageBytes += part.imageBytes;
  }
  return { records, bytes, imageBytes };
}

/** The share of a table's updates whose new row stayed in its page, so that no index changed. */
function hotShare(parts: readonly LogPart[]): string {
  const of = (kind: string) =>
    sumOf(parts.filter((part) => part.kind === kind || part.kind === `${kind}+INIT`)).records;
  const hot = of("Heap HOT_UPDATE");
  const all = hot + of("Heap UPDATE");
  return all === 0 ? "-" : `${(hot / all * 100).toFixed(1)} %`;
}
