// The simulator's command line: `--seed N --steps M` repeats one run and prints its story where it fails, `--minutes N`
// searches seed after seed, `--planted` shows that planted bugs are found, all or those with a text in their name, and with
// `--write` keeps the runs in which they show.
// `--members N` is for worlds of that many, `--no-stripe` for worlds without Stripe, `--no-trees` for users without parents,
// `--no-user-keys` for users without keys of their own, `--no-windows` for limit groups without periods of their own,
// `--crew` for members of an organisation who call at once, `--windows` for worlds where all have them, `--overage` for
// quota groups that sell past their quotas, `--money` for rates, overage and included packs in every workspace,
// `--no-money` for none, `--top-ups` for users who buy automatically, `--databases 2` for two databases.

import { PLANTED } from "./planted/bugs.ts";
import { type Place, STEPS } from "./planted/hunt.ts";
import { searchAll, writePlaces } from "./planted/search.ts";
import { type Outcome, simulate } from "./simulation.ts";
import { storyOf } from "./story.ts";

/** The value of an option, or its default. */
function option<Otherwise>(name: string, otherwise: Otherwise): number | Otherwise {
  const place = Deno.args.indexOf(`--${name}`);
  if (place < 0) return otherwise;
  const value = Number(Deno.args[place + 1]);
  if (!Number.isFinite(value)) throw new Error(`--${name} needs a number`);
  return value;
}

/** Undefined: each seed says. */
const members = option("members", undefined);

/** Whether some pay by Stripe. */
const stripe = !Deno.args.includes("--no-stripe");

/** Whether users have parents. */
const trees = !Deno.args.includes("--no-trees");

/** Whether members of an organisation call at once; undefined: each seed says. */
const crew = Deno.args.includes("--crew") ? true : undefined;

/** Whether users have keys of their own. */
const userKeys = !Deno.args.includes("--no-user-keys");

/** The share of workspaces whose limit groups have periods of their own. */
const windows = Deno.args.includes("--no-windows") ? 0 : Deno.args.includes("--windows") ? 1 : undefined;

/** Whether quota groups sell past their quotas. */
const overage = Deno.args.includes("--overage");

/** The share of workspaces with rates, overage or included packs. */
const money = Deno.args.includes("--no-money") ? 0 : Deno.args.includes("--money") ? 1 : undefined;

/** Whether users of one workspace buy automatically; undefined: each seed says. */
const topUps = Deno.args.includes("--top-ups") ? true : undefined;

/** How many databases the service has. */
const databases = option("databases", undefined);

const WORLD = { nodes: members, databases, stripe, trees, crew, userKeys, windows, overage, money, topUps };

/** The options that say which worlds. */
const KINDS = [
  ...["--no-stripe", "--no-trees", "--crew", "--no-user-keys", "--no-windows", "--windows"],
  ...["--overage", "--no-money", "--money", "--top-ups"],
];
const kinds = KINDS.filter((kind) => Deno.args.includes(kind));

/** Runs one seed and prints the result. */
async function runOne(seed: number, steps: number): Promise<boolean> {
  const outcome = await simulate({ seed, steps, ...WORLD });
  const { events, trace, violation } = outcome;
  console.log(`seed ${seed}, ${steps} steps, ${events} events, trace ${trace.slice(0, 16)}`);
  if (violation === null) return true;
  console.log(`${violation.checker}: ${violation.message}`);
  for (const line of storyOf(outcome.calls, outcome.notes, violation.message)) console.log(line);
  const numbers = Object.entries({ members, databases });
  const more = [
    ...numbers.map(([name, count]) => count === undefined ? "" : ` --${name} ${count}`),
    ...kinds.map((kind) => ` ${kind}`),
  ]
    .join("");
  console.log(`Again: deno task sim --seed ${seed} --steps ${steps}${more}`);
  return false;
}

/** Adds up what runs were. */
class Summary {
  seeds = 0;
  steps = 0;
  #virtualMs = 0;
  #calendarMs = 0;
  readonly #faults = new Map<string, number>();
  readonly #answers = new Map<string, number>();
  readonly #moves = new Map<string, number>();
  readonly #stripe = new Map<string, number>();

  add({ calls, faults, moves, stripe, virtualMs, calendarMs }: Outcome): void {
    this.seeds += 1;
    this.steps += calls.length;
    this.#virtualMs += virtualMs;
    this.#calendarMs += calendarMs;
    for (const [kind, times] of faults) this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + times);
    for (const [kind, times] of moves.flatMap((each) => Object.entries(each))) {
      this.#moves.set(kind, (this.#moves.get(kind) ?? 0) + times);
    }
    for (const [what, times] of stripe) this.#stripe.set(what, (this.#stripe.get(what) ?? 0) + times);
    for (const { request: { op }, answer } of calls) {
      const what = `${op} ${answer === null ? "unknown" : answer.model.code ?? "ok"}`;
      this.#answers.set(what, (this.#answers.get(what) ?? 0) + 1);
    }
  }

  get line(): string {
    const hours = (this.#virtualMs / 3_600_000).toFixed(1);
    const days = (this.#calendarMs / 86_400_000).toFixed(0);
    return `${this.seeds} seeds, ${this.steps} calls, ${hours} virtual hours, ${days} days of calendar`;
  }

  print(): void {
    console.log(this.line);
    const all = { Faults: this.#faults, Members: this.#moves, Stripe: this.#stripe, Calls: this.#answers };
    for (const [title, counts] of Object.entries(all)) {
      const sorted = [...counts].sort(([a], [b]) => a < b ? -1 : 1);
      console.log(`${title}: ${sorted.map(([kind, times]) => `${kind} ${times}`).join(", ")}`);
    }
  }
}

async function search(minutes: number, first: number, steps: number): Promise<boolean> {
  const summary = new Summary();
  const failed: number[] = [];
  const end = performance.now() + minutes * 60_000;
  for (let seed = first; performance.now() < end; seed++) {
    const outcome = await simulate({ seed, steps, ...WORLD });
    summary.add(outcome);
    if (outcome.violation !== null) {
      failed.push(seed);
      console.log(`seed ${seed}: ${outcome.violation.checker}: ${outcome.violation.message}`);
    }
    if (summary.seeds % 25 === 0) console.log(`${summary.line}, ${failed.length} failed`);
  }
  summary.print();
  console.log(failed.length === 0 ? "Nothing was found" : `Failed: ${failed.join(", ")}`);
  return failed.length === 0;
}

/** Looks for all planted bugs, or those with a text in their name; `--write` keeps where each shows. */
async function huntAll(): Promise<boolean> {
  const part = Deno.args[Deno.args.indexOf("--planted") + 1] ?? "--";
  const bugs = PLANTED.filter(({ name }) => part.startsWith("--") || name.includes(part));
  const missed: string[] = [];
  const found = new Map<string, Place>();
  await searchAll(bugs, ({ name }, caught) => {
    if (caught === null) missed.push(name);
    else found.set(name, { seed: caught.seed, steps: caught.steps });
    // Bug by bug, so that a search which is interrupted keeps what it has found.
    if (Deno.args.includes("--write")) writePlaces(found);
    const told = caught === null
      ? "not found"
      : `seed ${caught.seed}, ${caught.steps} steps, ${caught.checker}: ${caught.message.split("\n")[0]}`;
    console.log(`${name}: ${told}`);
  });
  console.log(missed.length === 0 ? `All ${bugs.length} were found` : `Not found: ${missed.join("; ")}`);
  return missed.length === 0;
}

const isFine = Deno.args.includes("--planted")
  ? await huntAll()
  : Deno.args.includes("--minutes")
  ? await search(option("minutes", 1), option("seed", 1), option("steps", STEPS))
  : await runOne(option("seed", 1), option("steps", STEPS));
if (!isFine) Deno.exit(1);
