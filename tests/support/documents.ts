// Documents as something to run: their fenced blocks, and whether what a command printed is what a document shows.

/** A fenced block of a document. */
interface Block {
  readonly language: string;
  readonly text: string;
  readonly line: number;
}

/** After its language a block may have a name. */
const FENCE = /^```(\w*)(?: \w+)?\n([\s\S]*?)^```$/gm;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** A generated id: a prefix, and at least one digit after it. */
const ID = /\b(?:app|ws|key|rsv|evt|crb|cle|gen)_(?=\w*\d)[0-9a-z_]+/;
/** A text that is cut short. */
const CUT = /[\w-]+\.\.\./;

export function blocksOf(document: string): Block[] {
  return [...document.matchAll(FENCE)].map(({ 1: language = "", 2: text = "", index }) => ({
    language,
    text,
    line: document.slice(0, index).split("\n").length,
  }));
}

/**
 * Compares what a document shows with what a command printed. Generated ids, keys and times may differ; each
 * shown one is recorded with its counterpart of this run, so that later commands of the document can name it.
 */
export class Shown {
  readonly #meant = new Map<string, string>();

  /** A text of the document with the generated parts that this run has in their place. */
  meant(text: string): string {
    let found = text;
    for (const [shown, printed] of this.#meant) found = found.replaceAll(shown, printed);
    return found;
  }

  /** Where the two differ; empty when the document is right. */
  differences(shown: string, printed: string): string[] {
    return shown.startsWith("{")
      ? this.#values(JSON.parse(shown), JSON.parse(printed), "answer")
      : this.#lines(shown, printed);
  }

  #values(shown: unknown, printed: unknown, path: string): string[] {
    if (Array.isArray(shown) && Array.isArray(printed)) {
      if (shown.length !== printed.length) {
        return [`${path}: ${shown.length} shown, ${printed.length} printed`];
      }
      return shown.flatMap((value, at) => this.#values(value, printed[at], `${path}[${at}]`));
    }
    if (isObject(shown) && isObject(printed)) {
      const [names, found] = [Object.keys(shown).sort(), Object.keys(printed).sort()];
      if (names.join() !== found.join()) return [`${path}: {${names}} shown, {${found}} printed`];
      return names.flatMap((name) => this.#values(shown[name], printed[name], `${path}.${name}`));
    }
    if (typeof shown === "string" && typeof printed === "string") {
      if (TIME.test(shown) && TIME.test(printed)) return [];
      if (ID.exec(shown)?.[0] === shown && shown.slice(0, 4) === printed.slice(0, 4)) {
        this.#meant.set(shown, printed);
        return [];
      }
    }
    return Object.is(shown, printed) ? [] : [`${path}: ${shown} shown, ${printed} printed`];
  }

  /** Each shown line is printed, in the order shown; other lines may stand between. */
  #lines(shown: string, printed: string): string[] {
    const left = printed.split("\n");
    const faults: string[] = [];
    for (const line of shown.trimEnd().split("\n")) {
      const at = left.findIndex((candidate) => this.#isLine(line, candidate));
      if (at < 0) faults.push(`not printed: ${line}`);
      else left.splice(0, at + 1);
    }
    return faults;
  }

  #isLine(shown: string, printed: string): boolean {
    const generated = shown.match(new RegExp(`${CUT.source}|${ID.source}`, "g")) ?? [];
    const names = generated.filter((text) => !this.#meant.has(text));
    let rest = this.meant(shown);
    for (const name of names) rest = rest.replace(name, "\0");
    const pattern = rest.split("\0").map((text) => RegExp.escape(plain(text))).join("([\\w-]+)");
    const found = new RegExp(`^${pattern}$`).exec(plain(printed));
    if (found === null) return false;
    names.forEach((name, at) => this.#meant.set(name, found[at + 1] as string));
    return true;
  }
}

/** Columns are as wide as their widest entry, which differs from run to run. */
function plain(text: string): string {
  return text.replaceAll(/ +/g, " ");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
