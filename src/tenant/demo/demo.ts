// The demo of a first start on an empty embedded store: a workspace, an app with the example catalog, a subscribed
// user with a curl command that reserves for it, and an organisation with a team and two members.

import type { Directory } from "../../../actors/directory.ts";
import type { Realm } from "../../../actors/call.ts";
import type { Term } from "../../../actors/term.ts";
import { type AdminWorld, createApp, createWorkspace, type ShownKey } from "../admin.ts";
import { applyCatalog } from "../catalogs.ts";
import catalog from "./catalog.json" with { type: "json" };

/** What making the demo uses. */
export type DemoWorld = AdminWorld & {
  readonly term: Pick<Term, "tree"> & { readonly directory: Pick<Directory, "runById"> };
};

/** The demo, in the form that is printed and stored in the data folder. */
export interface Demo {
  readonly appId: string;
  readonly identitySecret: string;
  readonly keys: readonly ShownKey[];
  readonly userId: string;
}

const DEMO_WORKSPACE = "Demo workspace";
const DEMO_USER = "user_demo";
/** The plans of users. Members need none: their organisation and team pay. */
const DEMO_PLANS = { [DEMO_USER]: "plan_pro", org_demo: "plan_org", team_demo: "plan_team" };
/** The parents of users, from the top down. */
const DEMO_PARENTS = { team_demo: "org_demo", ada_demo: "team_demo", bob_demo: "team_demo" };

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
  for (const realm of Object.values(app.realms)) await makeUsers(world, realm);
  return {
    appId: created.appId,
    identitySecret: created.identitySecret,
    keys: created.keys,
    userId: DEMO_USER,
  };
}

async function makeUsers({ term }: DemoWorld, realm: Realm): Promise<void> {
  for (const [userId, plan] of Object.entries(DEMO_PLANS)) {
    await term.directory.runById(userId, {
      realm,
      name: "subscribe",
      input: {
        plan,
        provider: null,
        externalId: null,
        customLimits: undefined,
        quantity: undefined,
        trial: undefined,
        customFeatures: undefined,
        startsAt: null,
        endsAt: null,
        cycleStart: undefined,
      },
    });
  }
  for (const [userId, parentId] of Object.entries(DEMO_PARENTS)) {
    await term.tree.setParent({ realm, userId, parentId, memberLimits: undefined, keeping: null });
  }
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
