// The catalog of an app with its editor. A text is checked first: errors are shown at their lines, and what it would change
// as a difference. Only a text that was checked against the current version is applied. The editor always keeps the text
// that was sent.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import { CatalogPage, type Findings, type InForce } from "./catalog_editor.tsx";
import { appOf, errorPage } from "../parts/subject.tsx";
import { offsetAt, readJson } from "../parts/json_places.ts";
import { crumbsOf } from "../parts/page.tsx";
import {
  type ActionRoute,
  mayChange,
  type PageContent,
  type PageRequest,
  type PageResult,
  type PageRoute,
} from "../parts/page_context.ts";
import { applyCatalog, getCatalog } from "../../contract/catalogs.ts";

const PATH = "/console/apps/:appId/:mode/catalog";

/** `/console/apps/{appId}/{mode}/catalog` */
export const catalogPage: PageRoute = {
  path: PATH,
  async show(request) {
    const inForce = await readInForce(request);
    return "content" in inForce ? inForce : show(request, inForce, inForce.text, {});
  },
};

/** Its buttons: check and apply. */
export const catalogAction: ActionRoute = {
  path: PATH,
  async run(request) {
    const inForce = await readInForce(request);
    if ("content" in inForce) return inForce;
    const text = (request.form.get("catalog") ?? "").replaceAll("\r\n", "\n");
    const read = readJson(text);
    const fail = (message: string, offset: number) =>
      show(request, inForce, text, { faults: [{ message, path: null, offset }], status: 400 });
    if ("fault" in read) return fail(read.fault.message, read.fault.offset);
    const { value, places } = read;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return fail("a catalog must be an object: { ... }", offsetAt(places, ""));
    }
    const catalog = { ...value, expectedVersion: inForce.version };
    return await checkOrApply(request, inForce, { text, catalog, places });
  },
};

/** A text that is a JSON object. */
interface Edited {
  readonly text: string;
  readonly catalog: Readonly<Record<string, unknown>>;
  readonly places: ReadonlyMap<string, number>;
}

async function checkOrApply(
  request: PageRequest,
  inForce: InForce,
  { text, catalog, places }: Edited,
): Promise<PageResult> {
  const { ask, form } = request;
  const { appId } = appOf(request);
  const call = (dryRun: "true" | "false") => ask.admin(applyCatalog, { appId, dryRun, catalog });
  const fail = (refusal: Refusal) => show(request, inForce, text, findingsOf(refusal, places));
  const checked = await call("true");
  if (!checked.ok) return fail(checked.error);
  if (form.get("step") !== "apply") return show(request, inForce, text, { checked: checked.data });
  // For example after a second click.
  if (checked.data.changes.length === 0) return done(request, inForce.version);
  if (form.get("fingerprint") !== fingerprintOf(inForce.version, text)) {
    const reason = form.get("version") !== String(inForce.version)
      ? `Version ${inForce.version} was applied in the meantime, so your text was not applied.`
      : "The text has changed since it was checked, so it was not applied.";
    const note = `${reason} These are its changes now.`;
    return show(request, inForce, text, { checked: checked.data, note, status: 409 });
  }
  const applied = await call("false");
  return applied.ok ? done(request, applied.data.version) : fail(applied.error);
}

/** The errors that a refused call names, each at its place; a note where it names none. */
function findingsOf({ message, details }: Refusal, places: ReadonlyMap<string, number>): Findings {
  const named = Array.isArray(details) ? details as Partial<{ path: string; message: string }>[] : [];
  const faults = named.flatMap(({ path, message }) =>
    path === undefined || message === undefined ? [] : [{ path, message, offset: offsetAt(places, path) }]
  );
  if (faults.length > 0) return { faults, status: 400 };
  return { note: `${message}. The catalog and your text are unchanged.`, status: 409 };
}

function done({ path }: PageRequest, version: number): PageResult {
  return { to: path, note: `Version ${version} of the catalog is in force.` };
}

async function readInForce(request: PageRequest): Promise<InForce | PageContent> {
  const { appId } = appOf(request);
  const catalog = await request.ask.admin(getCatalog, { appId });
  if (!catalog.ok) return errorPage(catalog.error);
  const { version, ...document } = catalog.data;
  const text = JSON.stringify(version === 0 ? FIRST_CATALOG : document, null, 2);
  return { version, text, rates: document.rates ?? [] };
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

function fingerprintOf(version: number, text: string): string {
  return hashOf(`${version}\n${text}`);
}

function show(request: PageRequest, inForce: InForce, text: string, findings: Findings): PageContent {
  return {
    title: "Catalog",
    status: findings.status ?? 200,
    crumbs: crumbsOf(appOf(request), "Catalog"),
    content: (
      <CatalogPage
        request={request}
        inForce={inForce}
        text={text}
        fingerprint={fingerprintOf(inForce.version, text)}
        findings={findings}
        mayEdit={mayChange(request.session)}
      />
    ),
  };
}
