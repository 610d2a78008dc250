// The hook in a page: the real React on a document in this process, a public key with an end-user token, and the real
// service.

import assert from "node:assert/strict";
import { parseHTML } from "npm:linkedom@0.18.15";
// @ts-types="npm:@types/react@19.3.0"
import { act, createElement, StrictMode } from "npm:react@19.3.1";
// @ts-types="npm:@types/react-dom@19.3.0/client"
import { createRoot } from "npm:react-dom@19.3.1/client";
// @ts-types="npm:@types/react-dom@19.3.0/server"
import { renderToString } from "npm:react-dom@19.3.1/server";
import { signEndUserToken } from "../../src/client/client.ts";
import {
  type LiveFeatures,
  type LiveUsage,
  useFeatures,
  useUsage,
  type UseUsageOptions,
} from "../../src/client/react.ts";
import { STREAM_LIMITS } from "../../src/process/limits.ts";
import { appWithUser, dataOf } from "../routes/support.ts";
import { FEATURED, service } from "./service.ts";
import { clientOf } from "./support.ts";

const WAIT_MS = 10_000;

/** Renders components that use hooks as a page does; what the hooks show is looked at with `until`. */
async function openPage<Props extends object, Shown>(
  useHooks: (props: Props) => Shown,
  options: Props,
  components = 1,
) {
  const window = parseHTML("<body></body>") as unknown as {
    readonly document: EventTarget & { readonly body: Element };
    readonly Event: typeof Event;
  };
  const { document } = window;
  const page = globalThis as Record<string, unknown>;
  Object.assign(page, { window, document, IS_REACT_ACT_ENVIRONMENT: true });
  const shown: Shown[] = [];
  let waiting: (() => void) | null = null;
  function Page({ place, props }: { readonly place: number; readonly props: Props }) {
    const now = useHooks(props);
    if (place === 0) shown.push(now);
    waiting?.();
    return null;
  }
  const root = createRoot(document.body);
  const render = (props: Props, count = components) => {
    const pages = Array.from(
      { length: count },
      (_, place) => createElement(Page, { key: place, place, props }),
    );
    return act(() => root.render(createElement(StrictMode, null, pages)));
  };
  await render(options);
  return {
    shown,
    render,
    /** Waits until the first component shows what is wanted; answers that. */
    async until(isWanted: (live: Shown) => boolean): Promise<Shown> {
      const deadline = performance.now() + WAIT_MS;
      while (!isWanted(shown.at(-1) as Shown)) {
        if (performance.now() > deadline) assert.fail(`The hook still shows ${JSON.stringify(shown.at(-1))}`);
        await act(() =>
          new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, 20);
            waiting = () => {
              clearTimeout(timer);
              resolve();
            };
          })
        );
        waiting = null;
      }
      return shown.at(-1) as Shown;
    },
    /** Hides the page and shows it again, as a browser does for a tab. */
    async comeBack() {
      for (const visibilityState of ["hidden", "visible"]) {
        Object.defineProperty(document, "visibilityState", { value: visibilityState, configurable: true });
        await act(() => void document.dispatchEvent(new window.Event("visibilitychange")));
      }
    },
    async close() {
      await act(() => root.unmount());
      for (const name of ["window", "document", "IS_REACT_ACT_ENVIRONMENT"]) delete page[name];
    },
  };
}

const openStreams = () => service.service.counts.streams.open;

async function untilStreams(count: number): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while (openStreams() !== count) {
    if (performance.now() > deadline) assert.fail(`${openStreams()} streams are open in place of ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const countOf = ({ usage }: LiveUsage) => usage?.counters[0]?.count;

Deno.test("the hook shows each change of usage, and never the usage of another user", async () => {
  // Tokens are signed by the real clock.
  service.clock.set(Date.now());
  const app = await appWithUser(service);
  const endUserToken = await signEndUserToken({
    identitySecret: app.identitySecret,
    userId: "u",
    expiresInSeconds: 86_400 * 365,
  });
  const client = clientOf(service, app, { apiKey: app.publicLive, endUserToken });
  const page = await openPage(useUsage, { client } as UseUsageOptions);
  try {
    assert.deepEqual(page.shown[0], { usage: null, error: null, isLive: false });
    const first = await page.until(({ isLive }) => isLive);
    assert.deepEqual([first.usage?.userId, countOf(first), first.error], ["u", 0, null]);
    await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count: 2 }));
    await page.until((live) => countOf(live) === 2);

    const other = clientOf(service, app);
    const before = page.shown.length;
    await page.render({ client: other, userId: "v" });
    const shown = page.shown.slice(before).concat(await page.until(({ isLive }) => isLive));
    assert.ok(shown.every(({ usage }) => usage === null || usage.userId === "v"), JSON.stringify(shown));

    await page.render({ client, userId: "v" });
    const refused = await page.until(({ error }) => error !== null);
    assert.deepEqual([refused.error?.code, refused.isLive, refused.usage], ["forbidden", false, null]);
  } finally {
    await page.close();
  }
  await untilStreams(0);
});

Deno.test("a page that a server renders shows what it is given, and opens no stream", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const initialUsage = await client.usage("u");
  const { states } = service.service.counts.streams;
  function Page() {
    const { usage, isLive } = useUsage({ client, userId: "u", initialUsage });
    return createElement("p", null, `${usage?.counters[0]?.remaining} ${isLive}`);
  }
  assert.equal(renderToString(createElement(Page)), "<p>100 false</p>");
  assert.equal(service.service.counts.streams.states, states);
});

Deno.test("the hook of features shows those of the user, before them what it is given", async () => {
  service.clock.set(Date.now());
  const app = await service.newApp(FEATURED);
  const client = clientOf(service, app);
  const given = { sso: { value: true, from: "plan", of: "u" } } as const;
  const live: LiveFeatures[] = [];
  function Page() {
    live.push(useFeatures({ client, userId: "u", initialFeatures: given }));
    return null;
  }
  renderToString(createElement(Page));
  assert.deepEqual([live[0]?.features, live[0]?.isOn("sso"), live[0]?.isOn("toString")], [
    given,
    true,
    false,
  ]);
});

Deno.test("components that show the same share a stream, which ends with the last of them", async () => {
  service.clock.set(Date.now());
  const app = await service.newApp(FEATURED);
  const endUserToken = await signEndUserToken({ identitySecret: app.identitySecret, userId: "u" });
  const client = clientOf(service, app, { apiKey: app.publicLive, endUserToken });
  const { ended } = service.service.counts.streams;
  const replaced = ended.replaced;
  // More than the streams of one token.
  const page = await openPage(useFeatures, { client }, STREAM_LIMITS.ofTokenMax + 2);
  try {
    await page.until(({ isLive }) => isLive);
    await untilStreams(1);
    await page.render({ client }, 1);
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    await page.until(({ isOn }) => isOn("sso"));
    assert.deepEqual([openStreams(), ended.replaced], [1, replaced]);
    assert.deepEqual(page.shown.map(({ error }) => error).filter((error) => error !== null), []);
  } finally {
    await page.close();
  }
  await untilStreams(0);
});

Deno.test("a page whose stream gave way to newer ones watches again when it is shown again", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const page = await openPage(useUsage, { client, userId: "u" } as UseUsageOptions);
  const others = new AbortController();
  try {
    await page.until(({ isLive }) => isLive);
    const ends = Array.from(
      { length: STREAM_LIMITS.ofUserMax },
      () => client.usage.watch("u", () => {}, { signal: others.signal }),
    );
    assert.equal((await page.until(({ error }) => error !== null)).error?.code, "replaced");
    others.abort();
    await Promise.all(ends);
    await untilStreams(0);
    await page.comeBack();
    assert.equal((await page.until(({ isLive }) => isLive)).error, null);
    assert.equal(openStreams(), 1);
  } finally {
    others.abort();
    await page.close();
  }
  await untilStreams(0);
});

Deno.test("what a server gave for one user is never shown to the next one", async () => {
  const app = await appWithUser(service);
  const [first, second] = [clientOf(service, app), clientOf(service, app)];
  const initialUsage = await first.usage("u");
  const options: UseUsageOptions = { client: first, userId: "u", initialUsage };
  const page = await openPage(useUsage, options);
  try {
    assert.equal(page.shown[0]?.usage?.userId, "u");
    await page.until(({ isLive }) => isLive);
    const before = page.shown.length;
    await page.render({ client: second, userId: "v", initialUsage });
    await page.until(({ isLive }) => isLive);
    const ids = new Set(page.shown.slice(before).map(({ usage }) => usage?.userId));
    assert.deepEqual([...ids], [undefined, "v"]);
  } finally {
    await page.close();
  }
  await untilStreams(0);
});
