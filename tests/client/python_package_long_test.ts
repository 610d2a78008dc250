// The client for Python: its tests and examples against a running service, with the `python3` of the path and Debian's;
// its types by mypy; the built package. Checks without their program are skipped.

import assert from "node:assert/strict";
import { withService } from "../tasks/support.ts";
import { run } from "./project.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const PACKAGE = `${ROOT}src/clients/python`;
const TESTS = `${ROOT}tests/client/python`;
const PRINTED: Readonly<Record<string, string>> = {
  "reserve.py": "committed: 2 of 100 images\nreleased: nothing to draw\nrefused: limit_reached\n",
  "agent.py": `${"drawn\n".repeat(5)}${"run_limit_reached\n".repeat(3)}`,
};

/** The Pythons of this machine that the package supports, each once, by the path of their program. */
async function pythons(): Promise<string[]> {
  const program = "import sys; assert sys.version_info >= (3, 9); print(sys.executable)";
  const found = new Set<string>();
  for (const name of ["python3", "/usr/bin/python3"]) {
    const path = await run(name, ["-c", program], ".").catch(() => "");
    if (path !== "") found.add(path.trim());
  }
  return [...found];
}

async function withModule(module: string): Promise<string | undefined> {
  for (const python of await pythons()) {
    if (await run(python, ["-c", `import ${module}`], ".").then(() => true, () => false)) return python;
  }
}

const FOUND = await pythons();
const MYPY = await withModule("mypy");
const BUILD = await withModule("build, setuptools, wheel");

for (const python of FOUND) {
  Deno.test(`the client for Python passes its tests with ${python}`, async () => {
    await withService(async (service) => {
      const { secretLive, publicLive, identitySecret } = await service.newApp();
      const env = {
        HOLDFAST_URL: service.url,
        HOLDFAST_KEY: secretLive,
        HOLDFAST_PUBLIC_KEY: publicLive,
        HOLDFAST_IDENTITY_SECRET: identitySecret,
        PYTHONPATH: PACKAGE,
        PYTHONDONTWRITEBYTECODE: "1",
      };
      const tests = ["test_client", "test_document", "test_models", "test_stream"];
      await run(python, ["-W", "ignore::ResourceWarning", "-m", "unittest", ...tests], TESTS, env);
      for (const [example, printed] of Object.entries(PRINTED)) {
        assert.equal(await run(python, [`${PACKAGE}/examples/${example}`], TESTS, env), printed, example);
      }
    }, { exportSecret: "test-export-secret-0123456789" });
  });
}

Deno.test({
  name: "the client for Python passes mypy --strict",
  ignore: MYPY === undefined,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_mypy_" });
    try {
      const args = ["-m", "mypy", "--strict", "--python-version", "3.9", "--cache-dir", folder];
      await run(MYPY!, [...args, "-p", "holdfast"], PACKAGE);
      await run(MYPY!, [...args, "examples"], PACKAGE, { MYPYPATH: PACKAGE });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "a wheel and an sdist are built of the client for Python",
  ignore: BUILD === undefined,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_wheel_" });
    try {
      await run("cp", ["-r", `${PACKAGE}/.`, folder], ".");
      await run(BUILD!, ["-m", "build", "--no-isolation", "--outdir", "built"], folder);
      const built = [...Deno.readDirSync(`${folder}/built`)].map(({ name }) => name).sort();
      assert.deepEqual(built, ["holdfast-0.1.0-py3-none-any.whl", "holdfast-0.1.0.tar.gz"]);
      const program = "import sys; sys.path.insert(0, sys.argv[1]); import holdfast, os; " +
        "print(holdfast.Holdfast.__name__, 'site-packages' in holdfast.__file__ or '.whl' in holdfast.__file__)";
      assert.equal(await run(BUILD!, ["-c", program, `${folder}/built/${built[0]}`], "/"), "Holdfast True\n");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
