// The versions of an app's catalog: the list, and one of them compared with the catalog in force.

import { changesText, LineDiff } from "./catalog_changes.tsx";
import {
  catalogPath,
  documentOf,
  type InForce,
  readInForce,
  textOf,
  versionsPath,
} from "./catalog_in_force.ts";
import { Time } from "../parts/format.tsx";
import { crumbsOf } from "../parts/page.tsx";
import { mayChange, type PageRoute } from "../parts/page_context.ts";
import { dataOf } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { getCatalogVersion, listCatalogVersions } from "../../contract/catalogs.ts";

const PATH = "/console/apps/:appId/:mode/catalog/versions";

type Version = AnswerOf<typeof listCatalogVersions>[number];

/** `/console/apps/{appId}/{mode}/catalog/versions` */
const versionsPage: PageRoute = {
  path: PATH,
  async show(request) {
    const inForce = await readInForce(request);
    const { app } = inForce;
    const versions = await request.ask.admin(listCatalogVersions, { appId: app.appId }).then(dataOf);
    return {
      title: "Versions of the catalog",
      crumbs: crumbsOf(app, { title: "Catalog", href: catalogPath(app) }, "Versions"),
      content: (
        <>
          <div class="head">
            <h1>Versions of the catalog</h1>
            <span class="soft">the newest 100, of both modes</span>
          </div>
          <section class="card">
            <h2 class="visually-hidden">List</h2>
            {versions.length === 0
              ? <p class="empty">No version yet.</p>
              : <Versions inForce={inForce} versions={versions} />}
          </section>
        </>
      ),
    };
  },
};

function Versions({ inForce, versions }: { inForce: InForce; versions: readonly Version[] }) {
  return (
    <Table
      rows={versions}
      columns={[
        {
          head: "Version",
          cell: ({ version }) => (
            <>
              <a class="row" href={versionsPath(inForce.app, version)}>Version {version}</a>{" "}
              <ModesOf inForce={inForce} version={version} />
            </>
          ),
        },
        { head: "Time", cell: ({ at }) => <Time at={at} /> },
        { head: "Person", cell: ({ who }) => who === null ? "unknown" : who === "api" ? "API" : who },
        { head: "Applied to", cell: ({ mode }) => mode === "test" ? "test mode alone" : "live mode" },
        { head: "Changes", cell: ({ changes }) => <span class="wrap">{changesText(changes, 3)}</span> },
      ]}
    />
  );
}

/** Where a version is in force now. */
function ModesOf({ inForce: { live, ofTest }, version }: { inForce: InForce; version: number }) {
  const where = version === ofTest?.version
    ? "test"
    : version !== live.version
    ? null
    : ofTest === null
    ? "live and test"
    : "live";
  return where === null ? null : <span class="tag good">in force: {where}</span>;
}

/** `/console/apps/{appId}/{mode}/catalog/versions/{version}` */
const versionPage: PageRoute = {
  path: `${PATH}/:version`,
  async show(request) {
    const inForce = await readInForce(request);
    const { app, text } = inForce;
    const version = request.params["version"] ?? "";
    const kept = await request.ask.admin(getCatalogVersion, { appId: app.appId, version }).then(dataOf);
    const title = `Version ${kept.version}`;
    const document = textOf(documentOf(kept));
    return {
      title: `${title} of the catalog`,
      crumbs: crumbsOf(
        app,
        { title: "Catalog", href: catalogPath(app) },
        { title: "Versions", href: versionsPath(app) },
        title,
      ),
      content: (
        <>
          <div class="head">
            <h1>
              {title} <ModesOf inForce={inForce} version={kept.version} />
            </h1>
            {mayChange(request.session) && document !== text
              ? <a class="button" href={`${versionsPath(app, kept.version)}/put-back`}>Put back</a>
              : null}
          </div>
          <section class="card">
            <h2>Compared with version {inForce.version}, in force in {app.mode} mode</h2>
            {document === text
              ? <p class="empty">No difference.</p>
              : <LineDiff before={text} after={document} />}
          </section>
          <section class="card">
            <h2>Document</h2>
            <pre tabindex={0}>{document}</pre>
          </section>
        </>
      ),
    };
  },
};

export const CATALOG_VERSION_PAGES: readonly PageRoute[] = [versionsPage, versionPage];
