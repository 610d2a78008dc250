// The pages of an action: its form, and the preview with the button that confirms it.

import { type Fault, type Field, Fields, FormFaults, FormKeys, type Values } from "./form.tsx";
import type { PageRequest } from "./page_context.ts";
import { Table } from "./table.tsx";

/** The effect of an action in plain words. */
export interface Preview {
  readonly sentences: readonly string[];
  /** Values that change, now and after the action. */
  readonly changes: readonly { readonly what: string; readonly before: string; readonly after: string }[];
  /** Further state that decides the effect. Leave out what changes without changing the effect. */
  readonly basis?: unknown;
  /** Set for an action that cannot be undone. */
  readonly danger?: Danger;
  /** The label of the button, such as "Grant". */
  readonly verb: string;
}

/** The confirmation of an action that cannot be undone. */
interface Danger {
  readonly consequence: string;
  /** The text that the operator types to confirm; null for a checkbox, where little is lost. */
  readonly typed: string | null;
}

/** What a ticked checkbox sends. */
export const TICKED = "yes";

/** The form of an action. */
export function ActionForm({ request, title, intro, fields, values, faults, back }: {
  request: PageRequest;
  title: string;
  intro: string | undefined;
  fields: readonly Field[];
  values: Values;
  faults: readonly Fault[];
  back: string;
}) {
  return (
    <section class="card form-card">
      <h1>{title}</h1>
      {intro === undefined ? null : <p class="soft">{intro}</p>}
      <FormFaults faults={faults} />
      <form method="post" action={request.path}>
        <FormKeys session={request.session} />
        <Fields fields={fields} values={values} faults={faults} />
        <div class="buttons">
          <button type="submit" name="step" value="preview" class="primary">Continue</button>
          <a class="button" href={back}>Cancel</a>
        </div>
      </form>
    </section>
  );
}

/**
 * The preview of an action, with the button that confirms it.
 *
 * @param values sent along with the button
 * @param once the key of an earlier attempt that may have been done
 */
export function ActionPreview({ request, title, preview, values, hasForm, back, note, typedFault, once }: {
  request: PageRequest;
  title: string;
  preview: Preview;
  values: Values;
  hasForm: boolean;
  back: string;
  note: string | undefined;
  typedFault: string | undefined;
  once: string | undefined;
}) {
  const { sentences, changes, danger, verb } = preview;
  return (
    <section class="card form-card" data-answer>
      <h1>{title}</h1>
      {note === undefined ? null : <div class="note warn" role="alert">{note}</div>}
      {sentences.map((sentence) => <p>{sentence}</p>)}
      {changes.length === 0 ? null : (
        <Table
          rows={changes}
          columns={[
            { head: "Value", cell: ({ what }) => what },
            { head: "Now", cell: ({ before }) => before },
            { head: "After", cell: ({ after }) => <b>{after}</b> },
          ]}
        />
      )}
      <form method="post" action={request.path}>
        <FormKeys session={request.session} once={once} />
        {Object.entries(values).map(([name, value]) => <input type="hidden" name={name} value={value} />)}
        {danger === undefined ? null : <Confirmation danger={danger} fault={typedFault} />}
        <div class="buttons">
          <button
            type="submit"
            name="step"
            value="confirm"
            class={danger === undefined ? "primary" : "danger"}
          >
            {verb}
          </button>
          {hasForm ? <button type="submit" name="step" value="form" formnovalidate>Back</button> : null}
          <a class="button" href={back}>Cancel</a>
        </div>
      </form>
    </section>
  );
}

function Confirmation(
  { danger: { consequence, typed }, fault }: { danger: Danger; fault: string | undefined },
) {
  const common = {
    id: "field-typed",
    name: "typed",
    required: true,
    autofocus: fault !== undefined,
    "aria-invalid": fault === undefined ? undefined : "true",
    "aria-describedby": fault === undefined ? undefined : "typed-fault",
  } as const;
  return (
    <div class="note bad">
      <p>
        <b>This cannot be undone.</b> {consequence}
      </p>
      {typed === null
        ? (
          <div class="field check">
            <label for="field-typed">I understand</label>
            <input {...common} type="checkbox" value={TICKED} />
          </div>
        )
        : (
          <>
            <label for="field-typed">
              To confirm, type <code>{typed}</code>
            </label>
            <input {...common} type="text" autocomplete="off" spellcheck={false} />
          </>
        )}
      {fault === undefined ? null : <p id="typed-fault" class="fault" role="alert">{fault}</p>}
    </div>
  );
}
