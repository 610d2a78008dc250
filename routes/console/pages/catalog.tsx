// The catalog of an app with its editor. A text is checked first: errors are shown at their lines, and what it would change
// as a difference. Only a text that was checked against the current version is applied. The editor always keeps the text
// that was sent.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import { CatalogPage, type Findings } from "./catalog_editor.tsx";
import { catalogPath, changedMode, type InForce, placeOfChange, readInForce } from "./catalog_in_force.ts";
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
import { applyCatalog, listCatalogVersions } from "../../contract/catalogs.ts";

const PATH = "/console/apps/:appId/:mode/catalog";

/** `/console/apps/{appId}/{mode}/catalog` */
export const catalogPage: PageRoute = {
  path: PATH,
  async show(request) {
    const inForce = await readInForce(request);
    return show(request, inForce, inForce.text, {});
  },
};

/** Its buttons: check, apply, and try in test mode. */
export const catalogAction: ActionRoute = {
  path: PATH,
  async run(request) {
    const inForce = await readInForce(request);
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
  const { app: { appId } } = inForce;
  const step = form.get("step");
  // Without a catalog of its own test mode has the one that the text was checked against.
  const isTry = step === "try" && inForce.ofTest === null;
  const mode = isTry ? "test" : changedMode(inForce.app);
  const call = (dryRun: "true" | "false") => ask.admin(applyCatalog, { appId, mode, dryRun, catalog });
  const fail = (refusal: Refusal) => show(request, inForce, text, findingsOf(refusal, places));
  const checked = await call("true");
  if (!checked.ok) return fail(checked.error);
  if (step !== "apply" && !isTry) {
    return show(request, inForce, text, { checked: checked.data, next: await nextVersion(request, inForce) });
  }
  // For example after a second click.
  if (checked.data.changes.length === 0) return done(inForce, inForce.version);
  if (form.get("fingerprint") !== fingerprintOf(inForce.version, text)) {
    const reason = form.get("version") !== String(inForce.version)
      ? `Version ${inForce.version} was applied in the meantime, so your text was not applied.`
      : "The text has changed since it was checked, so it was not applied.";
    const note = `${reason} These are its changes now.`;
    const next = await nextVersion(request, inForce);
    return show(request, inForce, text, { checked: checked.data, next, note, status: 409 });
  }
  const applied = await call("false");
  if (!applied.ok) return fail(applied.error);
  const { app } = inForce;
  return done(isTry ? { ...inForce, app: { ...app, mode: "test" } } : inForce, applied.data.version);
}

/** The number of the next version; both modes share the sequence. */
async function nextVersion({ ask }: PageRequest, { app: { appId }, version }: InForce): Promise<number> {
  const versions = await ask.admin(listCatalogVersions, { appId });
  return 1 + Math.max(version, versions.ok ? versions.data[0]?.version ?? 0 : 0);
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

function done(inForce: InForce, version: number): PageResult {
  const note = `Version ${version} of the catalog is in force ${placeOfChange(inForce)}.`;
  return { to: catalogPath(inForce.app), note };
}

function fingerprintOf(version: number, text: string): string {
  return hashOf(`${version}\n${text}`);
}

function show(request: PageRequest, inForce: InForce, text: string, findings: Findings): PageContent {
  return {
    title: "Catalog",
    status: findings.status ?? 200,
    crumbs: crumbsOf(inForce.app, "Catalog"),
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
