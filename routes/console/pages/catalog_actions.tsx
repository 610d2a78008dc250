// Actions on catalogs beside the editor: promote or drop the one of test mode, put back a version.

import { affectedText, changesText } from "./catalog_changes.tsx";
import {
  type CatalogDocument,
  catalogPath,
  changedMode,
  documentOf,
  type InForce,
  placeOfChange,
  readInForce,
  versionsPath,
} from "./catalog_in_force.ts";
import { type Action, actionRoutes } from "../parts/action.tsx";
import type { Preview } from "../parts/action_pages.tsx";
import type { ShownCatalog } from "../parts/catalog.ts";
import type { Fault } from "../parts/form.tsx";
import { crumbsOf } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { dataOf, PageError } from "../parts/subject.tsx";
import { applyCatalog, dropCatalog, getCatalogVersion, promoteCatalog } from "../../contract/catalogs.ts";

/** The catalogs of an app whose test mode has its own. */
interface OwnOfTest extends InForce {
  readonly ofTest: ShownCatalog;
}

async function loadOwn(request: PageRequest): Promise<OwnOfTest> {
  const inForce = await readInForce(request);
  const { ofTest } = inForce;
  if (ofTest !== null) return { ...inForce, ofTest };
  const message = "Test mode uses the catalog of live mode.";
  throw new PageError({ code: "not_found", message }, "No catalog of its own");
}

function location({ app }: InForce) {
  const back = catalogPath(app);
  return { crumbs: crumbsOf(app, { title: "Catalog", href: back }), back };
}

/** Previews what a document would change in a mode. */
async function previewChange(
  { ask }: PageRequest,
  { app: { appId } }: InForce,
  mode: "test" | undefined,
  catalog: CatalogDocument,
  preview: Pick<Preview, "verb" | "basis"> & { readonly first: string },
): Promise<Preview | readonly Fault[]> {
  const checked = await ask.admin(applyCatalog, { appId, mode, dryRun: "true", catalog: { ...catalog } });
  if (!checked.ok) {
    const { message, details } = checked.error;
    const named = (Array.isArray(details) ? details : []) as Partial<{ path: string; message: string }>[];
    const faults = named.filter(({ message }) => message !== undefined);
    if (faults.length === 0) return [{ field: null, message }];
    return faults.map(({ path, message }) => ({ field: null, message: `${path}: ${message}` }));
  }
  const { changes } = checked.data;
  const { first, ...rest } = preview;
  return {
    sentences: [
      first,
      changes.length === 0 ? "The document is the same." : `Changes: ${changesText(changes)}.`,
      affectedText(checked.data),
    ],
    changes: [],
    ...rest,
  };
}

const promote: Action<OwnOfTest, typeof promoteCatalog> = {
  path: "/console/apps/:appId/:mode/catalog/promote",
  title: "Promote the catalog of test mode",
  load: loadOwn,
  location,
  call: promoteCatalog,
  input: ({ app, ofTest }) => ({ appId: app.appId, expectedVersion: ofTest.version }),
  preview: (request, subject) => {
    const { live, ofTest } = subject;
    return previewChange(request, subject, undefined, documentOf(ofTest), {
      first:
        `Version ${ofTest.version}, in force in test mode alone, replaces version ${live.version} in live mode.`,
      basis: [live.version, ofTest.version],
      verb: "Promote",
    });
  },
  done: (_subject, _values, { version }) =>
    `Version ${version} of the catalog is in force in live and test mode.`,
};

const drop: Action<OwnOfTest, typeof dropCatalog> = {
  path: "/console/apps/:appId/:mode/catalog/drop",
  title: "Drop the catalog of test mode",
  load: loadOwn,
  location,
  call: dropCatalog,
  input: ({ app }) => ({ appId: app.appId, mode: "test" }),
  preview: (request, subject) => {
    const { live, ofTest } = subject;
    return previewChange(request, subject, "test", documentOf(live), {
      first:
        `Test mode uses version ${live.version} of live mode again, in place of version ${ofTest.version}.`,
      basis: [live.version, ofTest.version],
      verb: "Drop",
    });
  },
  done: (_subject, _values, { version }) =>
    `Version ${version} of the catalog is in force in live and test mode.`,
};

interface Kept extends InForce {
  readonly kept: ShownCatalog;
}

const putBack: Action<Kept, typeof applyCatalog> = {
  path: "/console/apps/:appId/:mode/catalog/versions/:version/put-back",
  title: "Put back a version",
  async load(request) {
    const inForce = await readInForce(request);
    const version = request.params["version"] ?? "";
    const kept = await request.ask.admin(getCatalogVersion, { appId: inForce.app.appId, version }).then(
      dataOf,
    );
    return { ...inForce, kept };
  },
  location: ({ app, kept }) => ({
    crumbs: crumbsOf(
      app,
      { title: "Catalog", href: catalogPath(app) },
      { title: `Version ${kept.version}`, href: versionsPath(app, kept.version) },
    ),
    back: catalogPath(app),
  }),
  call: applyCatalog,
  input: ({ app, version, kept }) => ({
    appId: app.appId,
    mode: changedMode(app),
    catalog: { ...documentOf(kept), expectedVersion: version },
  }),
  preview: (request, subject) => {
    const { app, version, kept } = subject;
    return previewChange(request, subject, changedMode(app), documentOf(kept), {
      first:
        `The document of version ${kept.version} replaces version ${version} ${placeOfChange(subject)}, ` +
        "as a new version.",
      basis: version,
      verb: "Put back",
    });
  },
  done: (subject, _values, { version }) =>
    `Version ${version} of the catalog is in force ${placeOfChange(subject)}.`,
};

export const CATALOG_ACTIONS = [actionRoutes(promote), actionRoutes(drop), actionRoutes(putBack)];
