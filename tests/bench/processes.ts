// Child processes and cleaning up. Whatever the benchmark makes (processes, a database, a folder) is put on one
// Cleanup the moment it exists and is undone in reverse order, each step bounded in time, whether the run ends, fails
// or is interrupted.

/** The repository's root; children run here so that they find deno.json. */
export const ROOT = new URL("../../", import.meta.url);

/** Where temporary folders go: the one place that the task may write to, whatever TMPDIR says. */
export const TEMP = "/tmp";

const STOP_MS = 4000;
const TAIL_CHARS = 4000;

/** Steps that undo what was made, last made first. */
export class Cleanup {
  readonly #steps: { what: string; undo: () => Promise<void> }[] = [];
  #running: Promise<void> | null = null;

  /** True once undoing has begun: nothing new may be started any more. */
  get begun(): boolean {
    return this.#running !== null;
  }

  /** Adds a step; `what` names it should it fail. */
  add(what: string, undo: () => Promise<void>): void {
    this.#steps.push({ what, undo });
  }

  /** Undoes everything once; further calls wait for the same end. */
  run(): Promise<void> {
    this.#running ??= this.#undoAll();
    return this.#running;
  }

  async #undoAll(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await within(step.undo(), 2 * STOP_MS, step.what);
      } catch (error) {
        console.error(`clean-up: ${step.what}: ${messageOf(error)}`);
      }
    }
  }
}

/** Runs a program's work, and undoes what it made: at its end, when it fails, and when it is interrupted. */
export async function withCleanup<T>(work: (cleanup: Cleanup) => Promise<T>): Promise<T> {
  const cleanup = new Cleanup();
  const interrupted = async () => {
    console.error("bench: interrupted, cleaning up");
    await cleanup.run();
    Deno.exit(130);
  };
  Deno.addSignalListener("SIGINT", interrupted);
  Deno.addSignalListener("SIGTERM", interrupted);
  try {
    return await work(cleanup);
  } finally {
    await cleanup.run();
    Deno.removeSignalListener("SIGINT", interrupted);
    Deno.removeSignalListener("SIGTERM", interrupted);
  }
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The promise's value, or an error that names `what` when it takes longer than `limitMs`. */
export async function within<T>(promise: Promise<T>, limitMs: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A child process with the end of its output kept, so that a failure can say why. */
export class Child {
  readonly #process: Deno.ChildProcess;
  readonly #name: string;
  #tail = "";
  #ended = false;

  private constructor(name: string, process: Deno.ChildProcess) {
    this.#name = name;
    this.#process = process;
    process.status.then(() => this.#ended = true);
    this.#keepTail(process.stderr);
  }

  /** Starts a program and registers its end. Throws Deno.errors.NotFound when it is not installed. */
  static start(cleanup: Cleanup, name: string, program: string, args: string[], env = {}): Child {
    // A run that is interrupted goes on until its next step; that step must not leave a process behind.
    if (cleanup.begun) throw new Error("interrupted");
    const process = new Deno.Command(program, {
      args,
      env,
      cwd: ROOT,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const child = new Child(name, process);
    cleanup.add(`stop ${name}`, () => child.stop());
    return child;
  }

  /** Its number in the system. */
  get pid(): number {
    return this.#process.pid;
  }

  /** The last output, for messages. */
  get tail(): string {
    return this.#tail;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The first line of stdout; the rest is kept as tail only. */
  async firstLine(limitMs: number): Promise<string> {
    const reader = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("\n")) {
      const { value, done } = await within(reader.read(), limitMs, `the start of ${this.#name}`);
      if (done) throw new Error(`${this.#name} ended before it was ready: ${await this.#lastWords()}`);
      text += value;
    }
    reader.releaseLock();
    return text.slice(0, text.indexOf("\n"));
  }

  /** Reads stdout to keep its end, for a child with output that is not parsed. */
  drainStdout(): void {
    this.#keepTail(this.#process.stdout);
  }

  /** Writes one text to stdin, closes it, and returns all of stdout once the child has ended well. */
  async exchange(input: string, limitMs: number): Promise<string> {
    const writer = this.#process.stdin.getWriter();
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
    const output = await within(new Response(this.#process.stdout).text(), limitMs, this.#name);
    const { success, code } = await this.#process.status;
    if (!success) throw new Error(`${this.#name} ended with code ${code}: ${this.#tail}`);
    return output;
  }

  /** Ends the child: asked first, killed when it does not listen. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#signal("SIGTERM");
    try {
      await within(this.#process.status, STOP_MS, `the end of ${this.#name}`);
    } catch {
      this.#signal("SIGKILL");
      await this.#process.status;
    }
  }

  #signal(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch {
      // It ended by itself in between, which is what was wanted.
    }
  }

  async #lastWords(): Promise<string> {
    // The two pipes end one after the other; a moment lets stderr arrive.
    await new Promise((resolve) => setTimeout(resolve, 100));
    return this.#tail.trim();
  }

  async #keepTail(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    try {
      for await (const text of stream.pipeThrough(new TextDecoderStream())) {
        this.#tail = (this.#tail + text).slice(-TAIL_CHARS);
      }
    } catch {
      // The pipe breaks with the process; its status shows why.
    }
  }
}

/** A port of 127.0.0.1 that was free a moment ago, for programs that can't choose one themselves. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
