// Reads a trace of requests (`TIMESTAMP,ContextTokens,GeneratedTokens`) as a stream: a line at a time, whatever the
// file's size. Each fault names its line. Times without an offset are UTC; line ends may be LF or CRLF.

/** One request of a trace. */
export interface TraceRow {
  /** Place in the file, from 0. */
  readonly index: number;
  readonly atMs: number;
  readonly contextTokens: number;
  readonly generatedTokens: number;
}

/** A line that is no request. */
export class TraceFault extends Error {
  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
  }
}

const HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens";
const LINE_LENGTH_MAX = 1_000;
const TOKENS_MAX = 1e12;
const TIME = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?$/;

/** What a trace holds. */
export interface TraceCount {
  readonly rows: number;
  /** The first faults. */
  readonly faults: readonly TraceFault[];
}

/** Reads a whole trace for its faults, so that nothing is sent from a file that has a fault further down. */
export async function checkTrace(path: string, faultsMax: number): Promise<TraceCount> {
  const faults: TraceFault[] = [];
  let rows = 0;
  for await (const row of readRows(path)) {
    if (!(row instanceof TraceFault)) rows++;
    else if (faults.push(row) >= faultsMax) break;
  }
  return { rows, faults };
}

/** The requests of a trace that was checked; throws the fault if the file has changed since. */
export async function* readTrace(path: string): AsyncGenerator<TraceRow> {
  for await (const row of readRows(path)) {
    if (row instanceof TraceFault) throw row;
    yield row;
  }
}

async function* readRows(path: string): AsyncGenerator<TraceRow | TraceFault> {
  let number = 0;
  let index = 0;
  for await (const line of readLines(path)) {
    number++;
    if (number === 1) {
      if (line === HEADER) continue;
      yield new TraceFault(1, `the titles must be ${HEADER}`);
      return;
    }
    if (line === "") continue;
    const row = parseRow(line, number, index);
    if (!(row instanceof TraceFault)) index++;
    yield row;
  }
  if (number === 0) yield new TraceFault(1, `the titles must be ${HEADER}`);
}

function parseRow(line: string, number: number, index: number): TraceRow | TraceFault {
  if (line.length > LINE_LENGTH_MAX) {
    return new TraceFault(number, `has more than ${LINE_LENGTH_MAX} characters`);
  }
  const values = line.split(",");
  const [time = "", context = "", generated = ""] = values;
  if (values.length !== 3) return new TraceFault(number, `must have 3 values, not ${values.length}`);
  const atMs = parseTime(time);
  if (atMs === null) return new TraceFault(number, `TIMESTAMP: must be a time, not "${time}"`);
  const [contextTokens, generatedTokens] = [parseTokens(context), parseTokens(generated)];
  if (contextTokens === null) return tokensFault(number, "ContextTokens", context);
  if (generatedTokens === null) return tokensFault(number, "GeneratedTokens", generated);
  return { index, atMs, contextTokens, generatedTokens };
}

function tokensFault(line: number, name: string, text: string): TraceFault {
  return new TraceFault(line, `${name}: must be a whole number from 0 to ${TOKENS_MAX}, not "${text}"`);
}

function parseTokens(text: string): number | null {
  const value = /^\d{1,13}$/.test(text) ? Number(text) : NaN;
  return value <= TOKENS_MAX ? value : null;
}

/** Milliseconds with their fraction; null for what is no time of the calendar. */
function parseTime(text: string): number | null {
  const parts = TIME.exec(text);
  if (parts === null) return null;
  const [, date, time, fraction = ".0", zone = "Z"] = parts;
  const whole = Date.parse(`${date}T${time}${zone}`);
  return Number.isNaN(whole) ? null : whole + Number(fraction) * 1000;
}

/** Lines without their ends. A line that never ends is cut, so that memory stays bounded. */
async function* readLines(path: string): AsyncGenerator<string> {
  using file = await Deno.open(path);
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(64 * 1024);
  let rest = "";
  for (let length = await file.read(chunk); length !== null; length = await file.read(chunk)) {
    const lines = (rest + decoder.decode(chunk.subarray(0, length), { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(0, LINE_LENGTH_MAX + 1);
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  if (rest !== "") yield rest.replace(/\r$/, "");
}
