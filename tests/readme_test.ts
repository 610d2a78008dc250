// The READMEs do what they say: their commands are run exactly as written, on a free port and in a folder of their
// own, and what they print is compared with what the documents show.

import assert from "node:assert/strict";
import { copyEmptyStore } from "./support/kept_stores.ts";
import { blocksOf, Shown } from "./support/documents.ts";
import { CHILD_ENVIRONMENT, pause, until, within } from "./crash/program.ts";

const ROOT = new URL("..", import.meta.url).pathname;
/** Read in this order by one newcomer: each document goes on where the one before left the service. */
const DOCUMENTS = [
  "README.md",
  "routes/README.md",
  "routes/mcp/README.md",
  "routes/ACCOUNTS.md",
  "src/cli/README.md",
  "src/integrations/compose/README.md",
];
/** What a newcomer's shell has of this process's variables; settings of the service are not among them. */
const KEPT_ENVIRONMENT = ["HOME", "DENO_DIR", "TMPDIR"];
const COMMAND_MS = 60_000;
const EXIT_MS = 60_000;
const START = /^((?:\w+=\S+ )*)deno task start$/;
const ASSIGNMENT = /^[A-Z]+=\S+$/;

/** A newcomer's machine: a shell whose addresses and data folder are free ones in place of the documents' own. */
class Newcomer {
  readonly #folder: string;
  readonly #ports = new Map([["127.0.0.1:8000", freePort()], ["8123", freePort()]]);
  readonly #shown = new Shown();
  readonly #background: Deno.ChildProcess[] = [];
  #variables = "";
  #service: { process: Deno.ChildProcess; output: () => string } | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Runs a block and answers where it and what is shown after it differ. */
  async run(script: string, shown: string | null): Promise<string[]> {
    let printed = "";
    for (const line of script.trim().replaceAll("\\\n", "").split("\n").map((line) => this.#here(line))) {
      const start = START.exec(line);
      if (start !== null) printed += await this.#start(line);
      else if (ASSIGNMENT.test(line)) this.#variables += `${line}\n`;
      else if (line.endsWith(" &")) this.#background.push(this.#spawn(`exec ${line.slice(0, -2)}`, "null"));
      else printed += await this.#run(line);
    }
    return shown === null ? [] : this.#shown.differences(this.#here(shown), printed);
  }

  async end(): Promise<void> {
    await this.#stop();
    for (const process of this.#background) {
      process.kill("SIGTERM");
      await process.status;
    }
  }

  /** The line with this machine's ports and folder, and with the ids of this run in place of the shown ones. */
  #here(text: string): string {
    let found = this.#shown.meant(text);
    for (const [shown, port] of this.#ports) {
      found = found.replaceAll(shown, shown.includes(":") ? `127.0.0.1:${port}` : String(port));
    }
    return found.replaceAll(".holdfast/", `${this.#folder}/`);
  }

  #spawn(line: string, output: "piped" | "null"): Deno.ChildProcess {
    const kept: Record<string, string> = {};
    for (const name of KEPT_ENVIRONMENT) {
      const value = Deno.env.get(name);
      if (value !== undefined) kept[name] = value;
    }
    return new Deno.Command("bash", {
      args: ["-c", this.#variables + line],
      cwd: ROOT,
      clearEnv: true,
      env: {
        ...kept,
        PATH: `${Deno.execPath().replace(/\/[^/]+$/, "")}:${Deno.env.get("PATH")}`,
        PORT: String(this.#ports.get("127.0.0.1:8000")),
        HOLDFAST_DATA_DIR: this.#folder,
        ...CHILD_ENVIRONMENT,
      },
      stdin: "null",
      stdout: output,
      stderr: output,
    }).spawn();
  }

  async #run(line: string): Promise<string> {
    const process = this.#spawn(line, "piped");
    const { code, stdout, stderr } = await within(process.output(), COMMAND_MS, () => line);
    const text = new TextDecoder().decode(stdout);
    assert.equal(code, 0, `${line}\n${text}${new TextDecoder().decode(stderr)}`);
    return text;
  }

  /** Stops the service that runs, starts another and waits until it listens. */
  async #start(line: string): Promise<string> {
    await this.#stop();
    const process = this.#spawn(line, "piped");
    let text = "";
    const keep = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
      for await (const part of stream.pipeThrough(new TextDecoderStream())) text += part;
    };
    void keep(process.stdout);
    void keep(process.stderr);
    this.#service = { process, output: () => text };
    await until("the service listens", COMMAND_MS, () => text.includes("Holdfast listens on") || null);
    return text;
  }

  async #stop(): Promise<void> {
    const service = this.#service;
    if (service === null) return;
    this.#service = null;
    service.process.kill("SIGTERM");
    await within(service.process.status, EXIT_MS, service.output);
    await pause(0);
  }
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function has(program: string): Promise<boolean> {
  return await new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" }).output()
    .then(() => true, () => false);
}

Deno.test({
  name: "a newcomer who runs every command of the READMEs sees what they show",
  // The newcomer's store is the embedded one, so one of the two suites is enough.
  ignore: Deno.env.has("HOLDFAST_TEST_DATABASE_URL") || !await has("curl"),
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_readme_" });
    const newcomer = new Newcomer(folder);
    const faults: string[] = [];
    try {
      await copyEmptyStore(folder);
      for (const document of DOCUMENTS) {
        const blocks = blocksOf(await Deno.readTextFile(ROOT + document));
        for (const [at, { language, text, line }] of blocks.entries()) {
          if (language !== "sh") continue;
          const next = blocks[at + 1];
          const shown = next?.language === "text" ? next.text : null;
          const found = await newcomer.run(text, shown).catch(({ message }: Error) => [message]);
          faults.push(...found.map((fault) => `${document}:${line}: ${fault}`));
        }
      }
    } finally {
      await newcomer.end();
      await Deno.remove(folder, { recursive: true });
    }
    assert.deepEqual(faults, []);
  },
});

Deno.test("the front page gives both commands with Deno and with npm alone, by the version that the checks use", async () => {
  const [front, checks] = await Promise.all(
    ["README.md", ".ci/run"].map((path) => Deno.readTextFile(ROOT + path)),
  );
  const version = /npx -y deno@(\S+)/.exec(checks as string)?.[1];
  for (const task of ["start", "test"]) {
    assert.ok((front as string).includes(`    deno task ${task}\n`));
    assert.ok((front as string).includes(`    npx -y deno@${version} task ${task}\n`));
  }
});
