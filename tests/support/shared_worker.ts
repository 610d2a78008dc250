// Lets several test files share one worker of `deno test`, as if each had its own: a file's hooks run around its own
// tests, and the names of its tests begin with the file and the place where they are written. `run.ts` writes the modules
// that call this, and takes files and places out of the names again.

import { far } from "./depth.ts";

const ROOT = new URL("../../", import.meta.url).href;

type Work = () => unknown;
type Step = (context: Deno.TestContext) => void | Promise<void>;
type Hooks = Record<"beforeAll" | "beforeEach" | "afterEach" | "afterAll", Work[]>;

interface TestFile {
  readonly file: string;
  readonly hooks: Hooks;
}

/** A test that has not ended by then waits for what never comes: it fails, and the next one runs. */
const TEST_MS_MAX = far(10) * 60_000;

const newHooks = (): Hooks => ({ beforeAll: [], beforeEach: [], afterEach: [], afterAll: [] });

/** Hooks of modules that several files import: they run once for all of them. */
const common = newHooks();
const real = Deno.test;
let loading: TestFile | null = null;
/** The file whose tests run now, and the end of its first hooks. */
let open: TestFile & { readonly opened: Promise<void> } | null = null;

/** Loads test files, paths from the root, in turn: the tests of a file run before those of the next one. */
export async function shareWorker(files: readonly string[]): Promise<void> {
  Object.assign(Deno, {
    test: Object.assign(register(real), hooksFor(), {
      ignore: register(real.ignore),
      only: register(real.only),
    }),
  });
  for (const file of files) {
    loading = { file, hooks: newHooks() };
    await import(ROOT + file);
  }
  loading = null;
  for (const hook of common.beforeAll) real.beforeAll(hook as () => void);
  real.afterAll(() => close());
  for (const hook of common.afterAll) real.afterAll(hook as () => void);
}

function hooksFor(): Record<keyof Hooks, (work: Work) => void> {
  const of = (kind: keyof Hooks) => (work: Work) => {
    if (loading === null) throw new Error("A hook is registered while a file is loaded");
    // The file itself calls for its own hooks. A module that it imports is run before it, and for the files after it.
    const isOwn = new Error().stack?.includes(ROOT + loading.file) === true;
    (isOwn ? loading.hooks : common)[kind].push(work);
  };
  return {
    beforeAll: of("beforeAll"),
    beforeEach: of("beforeEach"),
    afterEach: of("afterEach"),
    afterAll: of("afterAll"),
  };
}

/** What registers a test, in any of the ways that `Deno.test` takes one. */
function register(into: (definition: Deno.TestDefinition) => void) {
  return (...parts: (string | Step | Partial<Deno.TestDefinition>)[]): void => {
    if (loading === null) throw new Error("A test is registered while a file is loaded");
    const owner = loading;
    const definition: Partial<Deno.TestDefinition> = {};
    for (const part of parts) {
      if (typeof part === "string") definition.name = part;
      else if (typeof part === "function") definition.fn = part;
      else Object.assign(definition, part);
    }
    const { name, fn } = definition;
    if (fn === undefined) throw new Error("A test has a function");
    into({
      ...definition,
      name: `${owner.file} ${place()} ${name ?? fn.name}`,
      fn: (context) => run(owner, () => fn(context)),
    });
  };
}

async function run({ file, hooks }: TestFile, test: Work): Promise<void> {
  if (open?.file !== file) {
    await close();
    open = { file, hooks, opened: each(hooks.beforeAll) };
  }
  await open.opened;
  await each([...common.beforeEach, ...hooks.beforeEach]);
  try {
    await bounded(test);
  } finally {
    await each([...hooks.afterEach.toReversed(), ...common.afterEach.toReversed()]);
  }
}

async function bounded(test: Work): Promise<void> {
  const late = Promise.withResolvers<never>();
  const fail = () => late.reject(new Error(`The test has not ended within ${TEST_MS_MAX / 60_000} minutes`));
  const timer = setTimeout(fail, TEST_MS_MAX);
  try {
    await Promise.race([test(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ends the file whose tests ran last. */
async function close(): Promise<void> {
  const last = open;
  open = null;
  try {
    if (last !== null) await each(last.hooks.afterAll.toReversed());
  } catch (cause) {
    throw new Error(`A hook after the tests of ${last?.file} failed`, { cause });
  }
}

async function each(works: readonly Work[]): Promise<void> {
  for (const work of works) await work();
}

/** Where the call that registers a test is written: a path from the root, a line and a column. */
function place(): string {
  const lines = new Error().stack?.split("\n") ?? [];
  const written = lines.find((line) => line.includes(ROOT) && !line.includes(import.meta.url));
  return /tests\/[^)]+/.exec(written ?? "")?.[0] ?? "tests";
}
