// The content of the catalog's page: the editor with errors and changes, or the document alone for people who may not edit.

import { FormKeys } from "../parts/form.tsx";
import { placeOf } from "../parts/json_places.ts";
import { RateCard } from "./rate_card.tsx";
import type { RateDocument } from "../../../src/domain/catalog/rate_row.ts";
import { type DiffLine, diffLines } from "../parts/line_diff.ts";
import type { PageRequest } from "../parts/page_context.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import type { applyCatalog } from "../../contract/catalogs.ts";

/** The catalog in force. */
export interface InForce {
  readonly version: number;
  readonly text: string;
  readonly rates: readonly RateDocument[];
}

/** An error in a text. */
interface TextFault {
  readonly message: string;
  readonly path: string | null;
  readonly offset: number;
}

type Applied = AnswerOf<typeof applyCatalog>;

/** The result of a check. */
export interface Findings {
  readonly faults?: readonly TextFault[];
  /** A message without a place in the text. */
  readonly note?: string;
  readonly checked?: Applied;
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
          {inForce.version === 0 ? "no version yet" : `version ${inForce.version} is in force`}
          {" · "}
          shared by live and test mode
        </span>
      </div>
      {note === undefined ? null : <div class="note warn" role="alert">{note}</div>}
      {faults.length === 0 ? null : <Faults faults={faults} text={text} />}
      {mayEdit ? <Editor {...editing} /> : <Document inForce={inForce} />}
      <RateCard rates={inForce.rates} />
      <p class="hint">
        The reference under <a href="/docs">/docs</a>{" "}
        describes every member. “Check” shows all changes before you apply them.
      </p>
    </>
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

function Editor({ request, inForce, text, fingerprint, findings: { faults = [], checked } }: Editing) {
  return (
    <form method="post" action={request.path} class="editor">
      <FormKeys session={request.session} />
      {checked === undefined
        ? null
        : <Changes checked={checked} inForce={inForce} text={text} fingerprint={fingerprint} />}
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

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: " ", added: "+", removed: "-", gap: "⋯" };

/** The changes of a checked text, with the button that applies them. */
function Changes({ checked: { changes }, inForce, text, fingerprint }: {
  checked: Applied;
  inForce: InForce;
  text: string;
  fingerprint: string;
}) {
  if (changes.length === 0) return <div class="note good" role="status">No changes</div>;
  const before = inForce.version === 0 ? "" : inForce.text;
  const lines = diffLines(before, JSON.stringify(JSON.parse(text), null, 2));
  return (
    <section class="card" aria-label="Changes">
      <h2>Changes</h2>
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
        ? <p class="soft">Too many changes for a line-by-line view</p>
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
      <input type="hidden" name="fingerprint" value={fingerprint} />
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
