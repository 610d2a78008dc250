// The catalog of an app with its editor. A text is checked first: what is wrong with it shows at its place, what it would
// change as a difference. Only a text that was checked against the version in force is applied. Whatever comes back, the
// text is the one that was sent.

import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { hashOf } from "../../../src/process/secrets/hash.ts";
import { appOf, refusedPage } from "../parts/subject.tsx";
import { FormKeys } from "../parts/form.tsx";
import { offsetAt, placeOf, readJson } from "../parts/json_places.ts";
import { type DiffLine, diffLines } from "../parts/line_diff.ts";
import { appPath } from "../parts/page.tsx";
import {
  type ActionAt,
  mayChange,
  type Outcome,
  type PageAt,
  type PageRequest,
  type Shown,
} from "../parts/page_context.ts";

const PATH = "/console/apps/:appId/:mode/catalog";

/** The catalog in force. */
interface InForce {
  readonly version: number;
  readonly text: string;
}

/** Something that is wrong with a text. */
interface TextFault {
  readonly message: string;
  readonly path: string | null;
  readonly offset: number;
}

interface Applied {
  readonly version: number;
  readonly changes: readonly {
    readonly path: string;
    readonly id: string;
    readonly change: "added" | "changed" | "removed";
  }[];
}

/** What the editor shows beside its text. */
interface Findings {
  readonly faults?: readonly TextFault[];
  /** What cannot be said at a place. */
  readonly note?: string;
  readonly checked?: Applied;
  readonly status?: number;
}

/** `/console/apps/{appId}/{mode}/catalog` */
export const catalogPage: PageAt = {
  path: PATH,
  async show(request) {
    const inForce = await readInForce(request);
    return "content" in inForce ? inForce : shown(request, inForce, inForce.text, {});
  },
};

/** What its buttons do: check, and apply. */
export const catalogAction: ActionAt = {
  path: PATH,
  async run(request) {
    const inForce = await readInForce(request);
    if ("content" in inForce) return inForce;
    const text = (request.form.get("catalog") ?? "").replaceAll("\r\n", "\n");
    const read = readJson(text);
    if ("fault" in read) {
      const { message, offset } = read.fault;
      return shown(request, inForce, text, { faults: [{ message, path: null, offset }], status: 400 });
    }
    const { value, places } = read;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      const faults = [{
        message: "a catalog is an object: { ... }",
        path: null,
        offset: offsetAt(places, ""),
      }];
      return shown(request, inForce, text, { faults, status: 400 });
    }
    const members = { catalog: { ...value, expectedVersion: inForce.version } };
    const { appId } = appOf(request);
    const ask = (dryRun: "true" | "false") =>
      request.ask.admin<Applied>("applyCatalog", { appId, dryRun, ...members });
    const refused = ({ message, details }: Refusal): Shown => {
      const named = Array.isArray(details) ? details as Partial<{ path: string; message: string }>[] : [];
      const faults = named.flatMap(({ path, message }) =>
        path === undefined || message === undefined ? [] : [{ path, message, offset: offsetAt(places, path) }]
      );
      return shown(
        request,
        inForce,
        text,
        faults.length > 0 ? { faults, status: 400 } : {
          note: `${message}. Nothing was applied, and your text is as you sent it.`,
          status: 409,
        },
      );
    };
    const checked = await ask("true");
    if (!checked.ok) return refused(checked.error);
    if (request.form.get("step") !== "apply") {
      return shown(request, inForce, text, { checked: checked.data });
    }
    // As after a second click.
    if (checked.data.changes.length === 0) return done(request, inForce.version);
    if (request.form.get("ground") !== groundOf(inForce.version, text)) {
      const moved = request.form.get("version") !== String(inForce.version)
        ? `Version ${inForce.version} was applied meanwhile, so your text was not. `
        : "The text has changed since it was checked, so it was not applied. ";
      return shown(request, inForce, text, {
        checked: checked.data,
        note: `${moved}This is what it would change now.`,
        status: 409,
      });
    }
    const applied = await ask("false");
    return applied.ok ? done(request, applied.data.version) : refused(applied.error);
  },
};

function done({ path }: PageRequest, version: number): Outcome {
  return { to: path, note: `Version ${version} of the catalog is in force.` };
}

async function readInForce(request: PageRequest): Promise<InForce | Shown> {
  const { appId } = appOf(request);
  const catalog = await request.ask.admin<{ readonly version: number }>("getCatalog", { appId });
  if (!catalog.ok) return refusedPage(catalog.error);
  const { version, ...document } = catalog.data;
  return { version, text: JSON.stringify(version === 0 ? BEGINNING : document, null, 2) };
}

/** What an app without a catalog begins with. */
const BEGINNING = {
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

function groundOf(version: number, text: string): string {
  return hashOf(`${version}\n${text}`);
}

function shown(request: PageRequest, inForce: InForce, text: string, findings: Findings): Shown {
  const app = appOf(request);
  const { faults = [], note, checked, status = 200 } = findings;
  const changes = mayChange(request.session);
  return {
    title: "Catalog",
    status,
    crumbs: [{ title: app.name, href: appPath(app) }, { title: "Catalog", href: null }],
    content: (
      <>
        <div class="head">
          <h1>Catalog</h1>
          <span class="soft">
            {inForce.version === 0 ? "none is in force yet" : `version ${inForce.version} is in force`}
            {" · "}
            live and test share it
          </span>
        </div>
        {note === undefined ? null : <div class="note warn" role="alert">{note}</div>}
        {faults.length === 0 ? null : <Faults faults={faults} text={text} />}
        {changes
          ? (
            <form method="post" action={request.path} class="editor">
              <FormKeys session={request.session} />
              {checked === undefined ? null : <Changes checked={checked} inForce={inForce} text={text} />}
              <section class="sheet">
                <label for="catalog">Plans, packs, models, compose types and settings as JSON</label>
                <textarea
                  id="catalog"
                  name="catalog"
                  class="code"
                  wrap="off"
                  rows={30}
                  spellcheck={false}
                  autocomplete="off"
                  autocapitalize="off"
                  aria-invalid={faults.length > 0 ? "true" : undefined}
                  aria-describedby={faults.length > 0 ? "faults" : undefined}
                  data-places="caret"
                >
                  {`\n${text}`}
                </textarea>
                <p class="hint" id="caret" aria-live="off"></p>
                <div class="buttons">
                  <button
                    type="submit"
                    name="step"
                    value="check"
                    class={checked === undefined ? "primary" : ""}
                  >
                    Check
                  </button>
                  <a class="button" href={request.path}>Back to what is in force</a>
                </div>
              </section>
            </form>
          )
          : (
            <section class="sheet">
              <h2>The document in force</h2>
              {inForce.version === 0
                ? <p class="empty">There is no catalog yet. An admin writes one here.</p>
                : <pre tabindex={0}>{inForce.text}</pre>}
            </section>
          )}
        <p class="hint">
          What each member means is in the reference under{" "}
          <a href="/docs">/docs</a>. Nothing changes before you have seen what would.
        </p>
      </>
    ),
  };
}

function Faults({ faults, text }: { faults: readonly TextFault[]; text: string }) {
  const lines = text.split("\n");
  return (
    <section class="note bad" id="faults" role="alert">
      <h2>{faults.length === 1 ? "One thing is wrong" : `${faults.length} things are wrong`}</h2>
      <ul class="faults">
        {faults.map(({ message, path, offset }) => {
          const { line, column } = placeOf(text, offset);
          return (
            <li>
              <a href="#catalog" data-jumps={String(offset)}>Line {line}, column {column}</a>
              {": "}
              {path === null ? null : <code class="path">{path}</code>}
              {message}
              <pre>{(lines[line - 1] ?? "").trim().slice(0, 160)}</pre>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: " ", added: "+", removed: "-", gap: "⋯" };

/** What would change, and the button that does it. */
function Changes({ checked, inForce, text }: { checked: Applied; inForce: InForce; text: string }) {
  const { changes } = checked;
  if (changes.length === 0) {
    return <div class="note good" role="status">The text is right, and says what is in force already.</div>;
  }
  const before = inForce.version === 0 ? "" : inForce.text;
  const lines = diffLines(before, JSON.stringify(JSON.parse(text), null, 2));
  return (
    <section class="sheet" aria-label="What it would change">
      <h2>What it would change</h2>
      <ul class="would-change">
        {changes.slice(0, CHANGES_MAX).map(({ path, id, change }) => (
          <li>
            <span class={`tag ${TAGS[change]}`}>{change}</span> <code>{path}</code>{" "}
            <span class="soft">{path.startsWith(id) ? "" : id}</span>
          </li>
        ))}
      </ul>
      {changes.length > CHANGES_MAX ? <p class="soft">and {changes.length - CHANGES_MAX} more</p> : null}
      {lines === null
        ? <p class="soft">Too much changes to show it line by line.</p>
        : (
          <div class="diff" tabindex={0} role="region" aria-label="Line by line">
            {lines.map(({ kind, text }) => (
              <div class={kind}>
                <span>{SIGNS[kind]}</span>
                {kind === "added" ? <ins>{text}</ins> : kind === "removed" ? <del>{text}</del> : text}
              </div>
            ))}
          </div>
        )}
      <input type="hidden" name="ground" value={groundOf(inForce.version, text)} />
      <input type="hidden" name="version" value={String(inForce.version)} />
      <div class="buttons">
        <button type="submit" name="step" value="apply" class="primary">
          Apply as version {inForce.version + 1}
        </button>
      </div>
    </section>
  );
}

const CHANGES_MAX = 50;
const TAGS = { added: "good", changed: "warn", removed: "bad" } as const;
