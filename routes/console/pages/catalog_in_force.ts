// What the pages of a catalog read first: the catalog in force in the mode of the page, and what the other mode has.

import type { AppMode } from "../parts/ask.ts";
import type { PageRequest } from "../parts/page_context.ts";
import { appPath } from "../parts/page.tsx";
import { appOf, dataOf } from "../parts/subject.tsx";
import type { ShownCatalog } from "../parts/catalog.ts";
import { getCatalog } from "../../contract/catalogs.ts";

/** The catalog in force in the mode of a page. */
export interface InForce {
  readonly app: AppMode & { readonly name: string };
  readonly version: number;
  readonly document: CatalogDocument;
  readonly text: string;
  /** The catalogs of both modes; null in place of that of test mode without one of its own. */
  readonly live: ShownCatalog;
  readonly ofTest: ShownCatalog | null;
}

/** A catalog as it may be put back: without its version. */
export type CatalogDocument = Omit<ShownCatalog, "version" | "testOnly">;

/** Reads the catalogs of an app. */
export async function readInForce(request: PageRequest): Promise<InForce> {
  const app = appOf(request);
  const { appId } = app;
  const live = await request.ask.admin(getCatalog, { appId }).then(dataOf);
  const test = await request.ask.admin(getCatalog, { appId, mode: "test" }).then(dataOf);
  const ofTest = test.testOnly === true ? test : null;
  const shown = app.mode === "test" ? ofTest ?? live : live;
  const { version } = shown;
  const document = documentOf(shown);
  return {
    app,
    version,
    document,
    text: textOf(version === 0 ? FIRST_CATALOG : document),
    live,
    ofTest,
  };
}

/** A catalog without what an answer says beside the document. */
export function documentOf(
  { version: _version, testOnly: _testOnly, ...document }: ShownCatalog,
): CatalogDocument {
  return document;
}

/** A document as people edit and compare it. */
export function textOf(document: object): string {
  return JSON.stringify(document, null, 2);
}

/** The mode of the call that changes the catalog of a page. */
export function changedMode({ mode }: AppMode): "test" | undefined {
  return mode === "test" ? "test" : undefined;
}

/** Where a catalog comes into force by a change on this page. */
export function placeOfChange({ app, ofTest }: InForce): string {
  if (app.mode === "test") return "in test mode alone";
  return ofTest === null ? "in live and test mode" : "in live mode alone";
}

/** The path of the catalog's page. */
export function catalogPath(app: AppMode): string {
  return `${appPath(app)}/catalog`;
}

/** The path of a version, or of all without a number. */
export function versionsPath(app: AppMode, version?: number): string {
  return `${catalogPath(app)}/versions${version === undefined ? "" : `/${version}`}`;
}

/** The text in the editor of an app without a catalog. */
const FIRST_CATALOG = {
  settings: {},
  models: [],
  plans: [
    {
      id: "plan_free",
      name: "Free",
      rank: 0,
      period: { type: "monthly", anchor: "calendar" },
      limits: [
        { id: "lg_calls", label: "Calls", unit: "count", quota: 100, matches: [{ event: "*" }] },
      ],
    },
  ],
  packs: [],
};
