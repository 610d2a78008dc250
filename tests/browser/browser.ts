// Chromium on a real port, driven over its debugging protocol. Errors of pages and requests to other hosts are recorded, so
// that a test can require that there are none.

import assert from "node:assert/strict";
import puppeteer, { type Browser, type BrowserContext, type Page } from "npm:puppeteer-core@25.16.0";
import { consoleOf } from "../routes/console_support.ts";
import { ADMIN_TOKEN, startTestService, type TestService } from "../support/test_service.ts";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The path of Chromium; null where it is not installed, and the tests that need it are skipped. */
function chromium(): string | null {
  for (const place of PLACES) {
    try {
      if (Deno.statSync(place).isFile) return place;
    } catch {
      // Not here.
    }
  }
  return null;
}

/**
 * Starts a service and a browser for all tests of a file and returns a function that registers a test. Call it once, at
 * the top of the file. Each test begins without windows, and fails where one of its pages complained.
 */
export function browserOfFile(): (name: string, work: (stage: Stage) => Promise<void>) => void {
  const ignore = chromium() === null;
  let stage: Stage | null = null;
  Deno.test.beforeAll(async () => {
    if (!ignore) stage = await Stage.open(await startTestService(undefined, { allowsPrivateWebhooks: true }));
  });
  Deno.test.afterAll(async () => await stage?.close());
  return (name, work) => {
    Deno.test({ name, ignore, sanitizeOps: false, sanitizeResources: false }, async () => {
      assert.ok(stage !== null);
      try {
        await work(stage);
        assert.deepEqual(stage.complaints, []);
      } finally {
        await stage.clear();
      }
    });
  };
}

/** A service with its console on a port, and a browser. */
export class Stage {
  readonly service: TestService;
  readonly origin: string;
  /** Errors of scripts and of the content security policy, and requests to other hosts. */
  readonly complaints: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];

  private constructor(service: TestService, server: Deno.HttpServer<Deno.NetAddr>, browser: Browser) {
    this.service = service;
    this.#server = server;
    this.#browser = browser;
    this.origin = `http://127.0.0.1:${server.addr.port}`;
  }

  static async open(service: TestService): Promise<Stage> {
    const { fetch } = consoleOf(service);
    const server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request, info) => fetch(request, info),
    );
    const browser = await puppeteer.launch({
      executablePath: chromium() as string,
      // Tests may run as root in a container, where Chromium's own sandbox does not start.
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    return new Stage(service, server, browser);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.#server.shutdown();
    await this.service.close();
  }

  /** Closes every window and clears the complaints. */
  async clear(): Promise<void> {
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
    this.complaints.length = 0;
  }

  /** A window with its own cookies. */
  async window(width = 1200): Promise<Page> {
    const context = await this.#browser.createBrowserContext();
    this.#contexts.push(context);
    const page = await context.newPage();
    await page.setViewport({ width, height: 900 });
    page.on("pageerror", (error) => this.complaints.push(`${page.url()}: ${String(error)}`));
    page.on("console", (message) => {
      // An error status is a normal answer.
      const isRefusal = /^Failed to load resource: .* 4\d\d /.test(message.text());
      if (message.type() === "error" && !isRefusal) this.complaints.push(`${page.url()}: ${message.text()}`);
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== "data:" && origin !== this.origin) this.complaints.push(`asked ${request.url()}`);
    });
    return page;
  }

  /** A window that is signed in. */
  async signedIn(token = ADMIN_TOKEN, width = 1200): Promise<Page> {
    const page = await this.window(width);
    await page.goto(`${this.origin}/console`);
    await page.type("#token", token);
    await press(page, "Sign in");
    assert.equal(new URL(page.url()).pathname, "/console/apps");
    return page;
  }
}

/** Presses the button or follows the link of this text, and waits for the page that it leads to. */
export async function press(page: Page, text: string): Promise<void> {
  const found = await page.$$(
    `::-p-xpath(//main//*[self::button or self::a][normalize-space()=${quoted(text)}])`,
  );
  const [control] = found.length > 0
    ? found
    : await page.$$(`::-p-xpath(//*[self::button or self::a][normalize-space()=${quoted(text)}])`);
  assert.ok(control !== undefined, `${page.url()} has no "${text}"`);
  await Promise.all([page.waitForNavigation(), control.click()]);
}

function quoted(text: string): string {
  assert.ok(!text.includes('"'));
  return `"${text}"`;
}

/** Replaces the text of a field. */
export async function fill(page: Page, name: string, text: string): Promise<void> {
  await page.$eval(`main [name="${name}"]`, (field, value) => {
    (field as unknown as { value: string }).value = value;
  }, text);
}

/** The visible text of a page. */
export async function wordsOf(page: Page): Promise<string> {
  return await page.$eval("main", (main) => (main as unknown as { innerText: string }).innerText);
}

/** Waits until the text of a page matches. */
export async function until(page: Page, pattern: RegExp): Promise<void> {
  await page.waitForFunction(
    (source: string, flags: string) =>
      // deno-lint-ignore no-explicit-any -- runs in the browser
      new RegExp(source, flags).test(((globalThis as any).document.querySelector("main") as any).innerText),
    { timeout: 20_000 },
    pattern.source,
    pattern.flags,
  );
}
