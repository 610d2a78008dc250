// The real program as a child process: started with the permissions of the start task, its output kept, and always
// ended. A test never waits for it without a deadline.

const ROOT = new URL("../../", import.meta.url);
const KEPT_ENVIRONMENT = ["PATH", "HOME", "DENO_DIR", "TMPDIR"];
const LISTENS = /Holdfast listens on (http:\/\/\S+)/;
const START_MS = 180_000;

/**
 * What a child of a test runs with beside its settings: like the suite's own stores, an embedded one in a short process
 * is not worth optimised code. All children have the flags of the start task: V8 takes compiled code out of Deno's cache
 * only where it was compiled with the same flags, and every process compiles all code anew after one with others.
 */
export const CHILD_ENVIRONMENT = {
  NO_COLOR: "1",
  DENO_V8_FLAGS: ["--liftoff-only", ...startFlags()].join(),
} as const;

/** A started child. */
export class Program {
  readonly startedAt = performance.now();
  /** Resolves when the process has ended. */
  readonly ended: Promise<Deno.CommandStatus>;
  readonly #process: Deno.ChildProcess;
  readonly #output: Promise<unknown>;
  #stdout = "";
  #stderr = "";
  #hasEnded = false;

  /**
   * @param args what the runtime is started with; by default what the start task says
   * @param openFilesMax how many files it may open; default: the limit of this process
   */
  constructor(
    settings: Readonly<Record<string, string>>,
    { args = startArguments(), openFilesMax = null }: {
      readonly args?: readonly string[];
      readonly openFilesMax?: number | null;
    } = {},
  ) {
    const env: Record<string, string> = {};
    for (const name of KEPT_ENVIRONMENT) {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    }
    const line = [Deno.execPath(), ...args];
    if (openFilesMax !== null) line.unshift("sh", "-c", `ulimit -n ${openFilesMax}; exec "$0" "$@"`);
    const [program = "", ...rest] = line;
    this.#process = new Deno.Command(program, {
      args: rest,
      cwd: ROOT,
      clearEnv: true,
      env: { ...env, ...CHILD_ENVIRONMENT, PORT: "0", HOLDFAST_HOST: "127.0.0.1", ...settings },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#output = Promise.all([
      keep(this.#process.stdout, (text) => this.#stdout = (this.#stdout + text).slice(-100_000)),
      keep(this.#process.stderr, (text) => this.#stderr = (this.#stderr + text).slice(-100_000)),
    ]);
    this.ended = Promise.all([this.#process.status, this.#output]).then(([status]) => {
      this.#hasEnded = true;
      return status;
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get stdout(): string {
    return this.#stdout;
  }

  /** What it printed to stderr, without the lines of the runtime that fetches packages on a new machine. */
  get stderr(): string {
    return this.#stderr.replace(/^Download \S+\n/gm, "");
  }

  /** Where it listens. */
  async origin(limitMs = START_MS): Promise<string> {
    return await until("the program listens", limitMs, () => {
      const found = LISTENS.exec(this.#stdout)?.[1];
      if (found === undefined && this.#hasEnded) throw new Error(`It ended at once: ${this.#stderr}`);
      return found ?? null;
    });
  }

  signal(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch {
      // It ended by itself in between.
    }
  }

  /** `kill -9`, and waits for the end. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }

  /** Waits for the end; an error after the deadline. */
  async exit(limitMs: number): Promise<Deno.CommandStatus> {
    return await within(this.ended, limitMs, () => `the program's end\n${this.#stderr}`);
  }
}

/** Polls until a value is there. */
export async function until<T>(
  what: string,
  limitMs: number,
  poll: () => Promise<T | null> | T | null,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  while (true) {
    const value = await poll();
    if (value !== null) return value;
    if (performance.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await pause(20);
  }
}

/** The promise's value, or an error after the deadline. */
export async function within<T>(promise: Promise<T>, limitMs: number, what: () => string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Not within ${limitMs} ms: ${what()}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The arguments of deno in the start task, so that the tests run with its permissions and no others. */
export function startArguments(): string[] {
  const text = Deno.readTextFileSync(new URL("deno.json", ROOT));
  const { tasks } = JSON.parse(text) as { tasks: { start: string } };
  const [program, ...args] = tasks.start.replaceAll("'", "").split(" ");
  if (program !== "deno") throw new Error(`The start task does not run deno: ${tasks.start}`);
  return args;
}

/** The flags for V8 in the start task. */
function startFlags(): string[] {
  return startArguments().flatMap((arg) => /^--v8-flags=(.*)$/.exec(arg)?.[1]?.split(",") ?? []);
}

async function keep(stream: ReadableStream<Uint8Array<ArrayBuffer>>, add: (text: string) => void) {
  try {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) add(text);
  } catch {
    // The pipe breaks with the process.
  }
}
