// Processor time of a process's threads, as Linux counts it. On few cores a rate says little about two nodes, and what
// each thread spent on a request says how they would add up on more.

/** Milliseconds of processor time, by what a thread does. */
export interface ThreadTimes {
  /** The thread that answers calls. */
  readonly answering: number;
  /** All others: the drain's, the runtime's own. */
  readonly others: number;
}

/** Linux counts in hundredths of a second, whatever its own clock does. */
const MS_PER_TICK = 10;

/**
 * What the threads of a process have used since it started. The runtime lets no program read these files but with every
 * permission there is, so two small programs read them.
 */
export async function threadTimes(pid: number): Promise<ThreadTimes> {
  const ids = (await outputOf("ps", ["-L", "-o", "lwp=", "-p", String(pid)])).split("\n")
    .map((line) => line.trim()).filter((line) => line !== "");
  const lines = await outputOf("cat", ids.map((id) => `/proc/${pid}/task/${id}/stat`));
  let answering = 0;
  let others = 0;
  for (const line of lines.split("\n").filter((each) => each !== "")) {
    const used = ticksOf(line) * MS_PER_TICK;
    if (line.startsWith(`${pid} `)) answering += used;
    else others += used;
  }
  return { answering, others };
}

/** Milliseconds that some processes have used since they started; a process that has ended counts as 0. */
export async function processTimes(pids: readonly number[]): Promise<number> {
  if (pids.length === 0) return 0;
  const lines = await outputOf("cat", pids.map((pid) => `/proc/${pid}/stat`));
  return lines.split("\n").filter((line) => line !== "")
    .reduce((sum, line) => sum + ticksOf(line) * MS_PER_TICK, 0);
}

/** What a program prints; a thread that has just ended has no file any more, and that is no failure. */
export async function outputOf(program: string, args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program, { args, stderr: "null" }).output();
  return new TextDecoder().decode(stdout);
}

/** User and system time of a thread's status line, whose second field is a name in brackets. */
function ticksOf(line: string): number {
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
