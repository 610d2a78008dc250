// The content of the catalog's page: the editor with errors and changes, or the document alone for people who may not edit.

import { FormKeys } from "../parts/form.tsx";
import { placeOf } from "../parts/json_places.ts";
import { RateCard } from "./rate_card.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { affectedText, type AppliedChange, ChangeList, LineDiff } from "./catalog_changes.tsx";
import {
  catalogPath,
  documentOf,
  type InForce,
  placeOfChange,
  textOf,
  versionsPath,
} from "./catalog_in_force.ts";

/** An error in a text. */
interface TextFault {
  readonly message: string;
  readonly path: string | null;
  readonly offset: number;
}

/** The result of a check. */
export interface Findings {
  readonly faults?: readonly TextFault[];
  /** A message without a place in the text. */
  readonly note?: string;
  readonly checked?: AppliedChange;
  /** The number that a checked text gets. */
  readonly next?: number;
  readonly status?: number;
}

/** What the page shows. */
interface Editing {
  readonly request: PageRequest;
  readonly inForce: InForce;
  readonly text: string;
  /** The hash of the text and the version that it was checked against. */
  readonly fingerprint: string;
  readonly findings: Findings;
}

/** The content of the page. */
export function CatalogPage({ mayEdit, ...editing }: Editing & { mayEdit: boolean }) {
  const { inForce, text, findings: { faults = [], note } } = editing;
  return (
    <>
      <div class="head">
        <h1>Catalog</h1>
        <span class="soft">
          <Where inForce={inForce} /> · <a href={versionsPath(inForce.app)}>Versions</a>
        </span>
      </div>
      {note === undefined ? null : <div class="note warn" role="alert">{note}</div>}
      {faults.length === 0 ? null : <Faults faults={faults} text={text} />}
      <OwnOfTest inForce={inForce} mayEdit={mayEdit} />
      {mayEdit ? <Editor {...editing} /> : <Document inForce={inForce} />}
      <RateCard rates={inForce.document.rates ?? []} />
      <p class="hint">
        The reference under <a href="/docs">/docs</a>{" "}
        describes every member. “Check” shows all changes before you apply them.
      </p>
    </>
  );
}

/** Which catalog is in force in which mode. */
function Where({ inForce: { app, version, live, ofTest } }: { inForce: InForce }) {
  if (ofTest === null) {
    return <>{version === 0 ? "no version yet" : `version ${version} is in force in live and test mode`}</>;
  }
  const other = (mode: "live" | "test", { version }: { version: number }) => (
    <a href={catalogPath({ appId: app.appId, mode })}>{mode} mode has version {version}</a>
  );
  return app.mode === "test"
    ? <>version {version} is in force in test mode alone; {other("live", live)}</>
    : <>version {version} is in force in live mode alone; {other("test", ofTest)}</>;
}

/** On the page of test mode: how its own catalog differs from that of live mode. */
function OwnOfTest(
  { inForce: { app, live, ofTest, text }, mayEdit }: { inForce: InForce; mayEdit: boolean },
) {
  if (app.mode !== "test" || ofTest === null) return null;
  const ofLive = live.version === 0 ? "" : textOf(documentOf(live));
  return (
    <section class="card">
      <h2>Compared with live mode</h2>
      {ofLive === text ? <p class="empty">No difference.</p> : <LineDiff before={ofLive} after={text} />}
      {mayEdit
        ? (
          <div class="buttons">
            <a class="button primary" href={`${catalogPath(app)}/promote`}>Promote to live mode</a>
            <a class="button" href={`${catalogPath(app)}/drop`}>Drop</a>
          </div>
        )
        : null}
    </section>
  );
}

function Document({ inForce: { version, text } }: { inForce: InForce }) {
  return (
    <section class="card">
      <h2>Current version</h2>
      {version === 0
        ? <p class="empty">No catalog yet. An admin creates it here.</p>
        : <pre tabindex={0}>{text}</pre>}
    </section>
  );
}

function Editor({ request, inForce, text, fingerprint, findings }: Editing) {
  const { faults = [], checked, next = inForce.version + 1 } = findings;
  return (
    <form method="post" action={request.path} class="editor">
      <FormKeys session={request.session} />
      {checked === undefined
        ? null
        : <Changes checked={checked} inForce={inForce} text={text} fingerprint={fingerprint} next={next} />}
      <section class="card">
        <label for="catalog">Plans, packs, models, rates, compose types and settings as JSON</label>
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
          <button type="submit" name="step" value="check" class={checked === undefined ? "primary" : ""}>
            Check
          </button>
          <button type="submit" formaction={`${request.path}/what-if`}>What if</button>
          <a class="button" href={request.path}>Discard changes</a>
        </div>
      </section>
    </form>
  );
}

function Faults({ faults, text }: { faults: readonly TextFault[]; text: string }) {
  const lines = text.split("\n");
  return (
    <section class="note bad" id="faults" role="alert">
      <h2>{faults.length === 1 ? "1 error" : `${faults.length} errors`}</h2>
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

/** The changes of a checked text, with the buttons that apply them. */
function Changes({ checked, inForce, text, fingerprint, next }: {
  checked: AppliedChange;
  inForce: InForce;
  text: string;
  fingerprint: string;
  next: number;
}) {
  if (checked.changes.length === 0) return <div class="note good" role="status">No changes</div>;
  return (
    <section class="card" aria-label="Changes">
      <h2>Changes {placeOfChange(inForce)}</h2>
      <p>{affectedText(checked)}</p>
      <ChangeList changes={checked.changes} />
      <LineDiff before={inForce.version === 0 ? "" : inForce.text} after={textOf(JSON.parse(text))} />
      <input type="hidden" name="fingerprint" value={fingerprint} />
      <input type="hidden" name="version" value={String(inForce.version)} />
      <div class="buttons">
        <button type="submit" name="step" value="apply" class="primary">
          Apply as version {next}
        </button>
        {inForce.app.mode === "live" && inForce.ofTest === null
          ? <button type="submit" name="step" value="try">Try in test mode</button>
          : null}
      </div>
    </section>
  );
}
