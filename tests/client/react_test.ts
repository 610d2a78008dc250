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
import { appWithUser, dataOf } from "../routes/support.ts";
import { FEATURED, service } from "./service.ts";
import { clientOf } from "./support.ts";

/** Renders the hook as a page does; what it shows is looked at with `until`. */
async function openPage(options: UseUsageOptions) {
  const window = parseHTML("<body></body>") as unknown as { readonly document: { readonly body: Element } };
  const { document } = window;
  const page = globalThis as Record<string, unknown>;
  Object.assign(page, { window, document, IS_REACT_ACT_ENVIRONMENT: true });
  const shown: LiveUsage[] = [];
  let waiting: (() => void) | null = null;
  function Page(props: UseUsageOptions) {
    shown.push(useUsage(props));
    waiting?.();
    return null;
  }
  const root = createRoot(document.body);
  const render = (props: UseUsageOptions) =>
    act(() => root.render(createElement(StrictMode, null, createElement(Page, props))));
  await render(options);
  return {
    shown,
    render,
    /** Waits until the hook shows what is wanted; answers that. */
    async until(isWanted: (live: LiveUsage) => boolean): Promise<LiveUsage> {
      while (!isWanted(shown.at(-1) as LiveUsage)) {
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
      return shown.at(-1) as LiveUsage;
    },
    async close() {
      await act(() => root.unmount());
      for (const name of ["window", "document", "IS_REACT_ACT_ENVIRONMENT"]) delete page[name];
    },
  };
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
  const page = await openPage({ client });
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
  while (service.service.counts.streams.open > 0) await new Promise((resolve) => setTimeout(resolve, 5));
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
