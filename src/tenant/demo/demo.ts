// The demo of a first start on an empty embedded store: a workspace, an app with the example catalog, a subscribed
// user, and a curl command that reserves for that user.

import type { Directory } from "../../../actors/directory.ts";
import { type AdminWorld, applyCatalog, createApp, createWorkspace, type ShownKey } from "../admin.ts";
import catalog from "./catalog.json" with { type: "json" };

/** What making the demo uses. */
export type DemoWorld = AdminWorld & { readonly term: { readonly directory: Pick<Directory, "runById"> } };

/** The demo, in the form that is printed and stored in the data folder. */
export interface Demo {
  readonly appId: string;
  readonly identitySecret: string;
  readonly keys: readonly ShownKey[];
  readonly userId: string;
}

const DEMO_WORKSPACE = "Demo workspace";
const DEMO_USER = "user_demo";
const DEMO_PLAN = "plan_pro";

/**
 * Makes the demo in a store without workspaces; null where another workspace exists. A first start that was killed may have
 * left a demo workspace with keys that were never printed, so such a workspace gets a new app.
 */
export async function makeDemo(world: DemoWorld): Promise<Demo | null> {
  const known = [...world.registry.workspaces.values()];
  if (known.some(({ name }) => name !== DEMO_WORKSPACE)) return null;
  const workspace = known[0] ?? await createWorkspace(world, { name: DEMO_WORKSPACE });
  const created = await createApp(world, { name: "Demo app", workspaceId: workspace.workspaceId });
  const app = created === null ? undefined : world.registry.apps.get(created.appId);
  if (created === null || app === undefined) throw new Error("The demo app was not created");
  const applied = await applyCatalog(world, app, catalog);
  if ("code" in applied) throw new Error(`The demo catalog is invalid: ${JSON.stringify(applied.details)}`);
  for (const realm of Object.values(app.realms)) {
    await world.term.directory.runById(DEMO_USER, {
      realm,
      name: "subscribe",
      input: {
        plan: DEMO_PLAN,
        provider: null,
        externalId: null,
        customLimits: undefined,
        startsAt: null,
        endsAt: null,
        cycleStart: undefined,
      },
    });
  }
  return {
    appId: created.appId,
    identitySecret: created.identitySecret,
    keys: created.keys,
    userId: DEMO_USER,
  };
}

/** The demo as text for the terminal, with a command that works when pasted. */
export function demoText(demo: Demo, origin: string): string {
  const keys = demo.keys.map(({ class: keyClass, mode, key }) => `  ${keyClass} ${mode}  ${key}`);
  const secret = demo.keys.find((key) => key.class === "secret" && key.mode === "live")?.key ?? "";
  return [
    `Demo app ${demo.appId}, its keys:`,
    ...keys,
    "Reserve one image for the demo user:",
    `  curl -s ${origin}/api/v1/reserve -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '{"userId":"${demo.userId}","event":"image.render"}'`,
  ].join("\n");
}
