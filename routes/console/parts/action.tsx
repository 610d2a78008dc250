// Acts: what operators do to users and apps. Each goes three steps: a form, a preview that says what it will do, and the
// deed. The preview carries a hash of its ground, which is what it says and what it was made of. Where the ground has
// changed before somebody confirms, the new preview shows and nothing is done. The hash is compared just before the
// endpoint is called, and endpoints lock nothing for that moment; each decides by the state that it then meets.

import { hashOf } from "../../../src/process/secrets/hash.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { STATUS } from "../../http/errors.ts";
import type { Members } from "../../http/body.ts";
import type { World } from "./ask.ts";
import {
  type Fault,
  faultsOf,
  type Field,
  Fields,
  FormFaults,
  FormKeys,
  type Values,
  valuesOf,
} from "./form.tsx";
import type { Crumb } from "./page.tsx";
import {
  type ActionAt,
  mayChange,
  type Outcome,
  type PageAt,
  type PageRequest,
  type Shown,
} from "./page_context.ts";

/** Something that operators do. `Subject` is what it reads to know what it is about. */
export interface Act<Subject> {
  /** Of the form; preview and deed are posted to it. */
  readonly path: string;
  readonly title: string;
  /** Reads what the act is about; a page in its place says why there is nothing to do. */
  readonly about: (request: PageRequest) => Promise<Subject | Shown> | Subject | Shown;
  readonly place: (request: PageRequest, subject: Subject) => {
    readonly crumbs: readonly Crumb[];
    /** The path of the page that the act is offered on, and that follows it. */
    readonly back: string;
  };
  /** What is asked; a query of the same names fills it in advance. Empty: the preview comes first. */
  readonly fields: (subject: Subject) => readonly Field[];
  /** What stands above the form, in a sentence. */
  readonly lead?: (subject: Subject) => string;
  /** The endpoint that does it. Its input is checked before a preview shows. */
  readonly call: (subject: Subject, values: Values) => Call;
  /** What it will do. */
  readonly preview: (
    request: PageRequest,
    subject: Subject,
    values: Values,
  ) => Promise<Preview | readonly Fault[]> | Preview | readonly Fault[];
  /** What is said after it: a sentence on the page that follows, or a page of its own, such as for a link. */
  readonly done: (subject: Subject, values: Values, answer: unknown) => string | Shown;
  /** The user that it is done to, for the audit log. */
  readonly userId?: (subject: Subject) => string;
}

/** A call of the API. */
export interface Call {
  /** The endpoint's id. */
  readonly id: string;
  readonly members: Members;
  /** Whether it is one of the admin API. */
  readonly isAdmin?: boolean;
}

/** What an act will do, in plain words. */
export interface Preview {
  readonly sentences: readonly string[];
  /** What changes, each from what it is to what it will be. */
  readonly changes: readonly { readonly what: string; readonly before: string; readonly after: string }[];
  /** What it was made of beside what it says. Nothing that changes without changing what the act does. */
  readonly ground?: unknown;
  /** Set where it cannot be undone: the consequence, and what is to be typed to go on. */
  readonly danger?: Danger;
  /** What the button says, such as "Grant". */
  readonly verb: string;
}

/** What cannot be undone. */
export interface Danger {
  readonly consequence: string;
  /** What is to be typed to go on; null for a box to tick, where little is lost. */
  readonly typed: string | null;
}

/** What the steps of an act send along. */
type Step = "form" | "preview" | "confirm";

/** The page of an act and what is posted to it. */
export function actAt<Subject>(act: Act<Subject>): { readonly page: PageAt; readonly action: ActionAt } {
  return {
    page: { path: act.path, show: (request) => showAct(act, request) },
    action: { path: act.path, run: (request) => runAct(act, request) },
  };
}

type Once = { readonly once: string };

const OPERATORS_ONLY = "Your role looks at everything and changes nothing.";

async function showAct<Subject>(act: Act<Subject>, request: PageRequest): Promise<Outcome> {
  if (!mayChange(request.session)) {
    return { title: "Not allowed", content: <p class="note warn">{OPERATORS_ONLY}</p>, status: 403 };
  }
  const subject = await act.about(request);
  if (isShown(subject)) return subject;
  const fields = act.fields(subject);
  const values = valuesOf(fields, request.query, true);
  const asks = fields.some(({ kind }) => kind !== "hidden" && kind !== "fixed");
  return asks ? showForm(act, request, subject, values) : await showPreview(act, request, subject, values);
}

/** What acts came to, by session and key, so that a second click is told what the first one did. */
const outcomes = new WeakMap<World, Map<string, Promise<Outcome>>>();
const OUTCOMES_MAX = 200;

function runAct<Subject>(act: Act<Subject>, request: PageRequest & Once): Promise<Outcome> {
  const step = request.form.get("step") as Step | null;
  if (step !== "confirm") return previewAct(act, request, step);
  const { serving } = request.ask;
  const known = outcomes.get(serving) ?? new Map<string, Promise<Outcome>>();
  outcomes.set(serving, known);
  const key = `${request.session.id} ${request.once} ${request.path}`;
  const earlier = known.get(key);
  if (earlier !== undefined) return earlier;
  const outcome = confirmAct(act, request);
  known.set(key, outcome);
  for (const [oldest] of known) {
    if (known.size <= OUTCOMES_MAX) break;
    known.delete(oldest);
  }
  // What was not done may be tried again under the same key.
  const forgetUndone = (came: Outcome | null) => {
    if (came === null || !("isDone" in came)) known.delete(key);
  };
  outcome.then(forgetUndone, () => forgetUndone(null));
  return outcome;
}

async function previewAct<Subject>(
  act: Act<Subject>,
  request: PageRequest,
  step: Step | null,
): Promise<Outcome> {
  const subject = await act.about(request);
  if (isShown(subject)) return subject;
  const values = valuesOf(act.fields(subject), request.form);
  if (step === "form") return showForm(act, request, subject, values);
  return await showPreview(act, request, subject, values);
}

async function confirmAct<Subject>(act: Act<Subject>, request: PageRequest & Once): Promise<Outcome> {
  const subject = await act.about(request);
  if (isShown(subject)) return subject;
  const fields = act.fields(subject);
  const values = valuesOf(fields, request.form);
  const preview = await previewOf(act, request, subject, values);
  if (!("verb" in preview)) return showForm(act, request, subject, values, preview);
  if (request.form.get("ground") !== groundOf(preview, values)) {
    return showPreview(act, request, subject, values, { preview, note: CHANGED });
  }
  const { danger } = preview;
  if (danger !== undefined && request.form.get("typed") !== (danger.typed ?? TICKED)) {
    const typedFault = danger.typed === null ? "Tick this to go on" : `Type "${danger.typed}"`;
    return showPreview(act, request, subject, values, { preview, typedFault });
  }
  const { id, members, isAdmin = false } = act.call(subject, values);
  const { ask, app, once } = request;
  const answer = isAdmin || app === null
    ? await ask.admin(id, members)
    : await ask.app(app, id, members, once, {
      userId: act.userId?.(subject) ?? null,
      before: sideOf(preview, "before"),
      after: sideOf(preview, "after"),
    });
  if (!answer.ok) return refusedAct(act, request, subject, values, answer.error);
  const said = act.done(subject, values, answer.data);
  if (typeof said !== "string") return { ...said, isDone: true };
  return { to: act.place(request, subject).back, note: said, isDone: true };
}

const TICKED = "yes";
const CHANGED = "Something changed since this was shown, and nothing was done. This is what it would do now.";

function refusedAct<Subject>(
  act: Act<Subject>,
  request: PageRequest & Once,
  subject: Subject,
  values: Values,
  refusal: Refusal,
): Promise<Outcome> | Outcome {
  const { once } = request;
  // Whether it was done is not known: under the same key it happens once.
  if (STATUS[refusal.code] >= 500 && refusal.code !== "not_implemented") {
    const note = `${refusal.message}. Confirm again: it happens once, also if it was done already.`;
    return showPreview(act, request, subject, values, { note, once, status: STATUS[refusal.code] });
  }
  const fields = act.fields(subject);
  return showForm(act, request, subject, values, faultsOf(refusal, fields), STATUS[refusal.code]);
}

async function previewOf<Subject>(
  act: Act<Subject>,
  request: PageRequest,
  subject: Subject,
  values: Values,
): Promise<Preview | readonly Fault[]> {
  const { id, members } = act.call(subject, values);
  const misfit = request.ask.misfitOf(id, members);
  if (misfit !== null) return faultsOf(misfit, act.fields(subject));
  return await act.preview(request, subject, values);
}

function groundOf({ sentences, changes, ground, danger }: Preview, values: Values): string {
  return hashOf(JSON.stringify([sentences, changes, ground ?? null, danger ?? null, Object.entries(values)]));
}

/** What changes, as the audit log keeps it: in the words that the operator saw. */
function sideOf({ changes }: Preview, side: "before" | "after"): Record<string, string> {
  return Object.fromEntries(changes.map((change) => [change.what, change[side]]));
}

/** What of a preview is not as at first. */
interface Again {
  readonly preview?: Preview;
  readonly note?: string;
  readonly typedFault?: string;
  readonly once?: string;
  readonly status?: number;
}

function showForm<Subject>(
  act: Act<Subject>,
  request: PageRequest,
  subject: Subject,
  values: Values,
  faults: readonly Fault[] = [],
  status = faults.length > 0 ? 400 : 200,
): Shown {
  const { crumbs, back } = act.place(request, subject);
  const fields = act.fields(subject);
  const lead = act.lead?.(subject);
  return {
    title: act.title,
    crumbs: [...crumbs, { title: act.title, href: null }],
    status,
    content: (
      <section class="sheet act">
        <h1>{act.title}</h1>
        {lead === undefined ? null : <p class="soft">{lead}</p>}
        <FormFaults faults={faults} />
        <form method="post" action={request.path}>
          <FormKeys session={request.session} />
          <Fields fields={fields} values={values} faults={faults} />
          <div class="buttons">
            <button type="submit" name="step" value="preview" class="primary">Show what it will do</button>
            <a class="button" href={back}>Cancel</a>
          </div>
        </form>
      </section>
    ),
  };
}

async function showPreview<Subject>(
  act: Act<Subject>,
  request: PageRequest,
  subject: Subject,
  values: Values,
  again: Again = {},
): Promise<Shown> {
  const preview = again.preview ?? await previewOf(act, request, subject, values);
  if (!("verb" in preview)) return showForm(act, request, subject, values, preview);
  const { crumbs, back } = act.place(request, subject);
  const fields = act.fields(subject);
  const asks = fields.some(({ kind }) => kind !== "hidden" && kind !== "fixed");
  const { danger } = preview;
  return {
    title: act.title,
    crumbs: [...crumbs, { title: act.title, href: null }],
    status: again.status ?? (again.note === undefined ? again.typedFault === undefined ? 200 : 400 : 409),
    content: (
      <section class="sheet act">
        <h1>{act.title}</h1>
        {again.note === undefined ? null : <div class="note warn" role="alert">{again.note}</div>}
        {preview.sentences.map((sentence) => <p>{sentence}</p>)}
        <Changes changes={preview.changes} />
        <form method="post" action={request.path}>
          <FormKeys session={request.session} {...(again.once === undefined ? {} : { once: again.once })} />
          <input type="hidden" name="ground" value={groundOf(preview, values)} />
          {Object.entries(values).map(([name, value]) => <input type="hidden" name={name} value={value} />)}
          {danger === undefined ? null : <LastQuestion danger={danger} fault={again.typedFault ?? null} />}
          <div class="buttons">
            <button
              type="submit"
              name="step"
              value="confirm"
              class={danger === undefined ? "primary" : "danger"}
            >
              {preview.verb}
            </button>
            {asks ? <button type="submit" name="step" value="form" formnovalidate>Back</button> : null}
            <a class="button" href={back}>Cancel</a>
          </div>
        </form>
      </section>
    ),
  };
}

function Changes({ changes }: Pick<Preview, "changes">) {
  if (changes.length === 0) return null;
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>What</th>
          <th>Now</th>
          <th>Then</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ what, before, after }) => (
          <tr>
            <td data-label="What">{what}</td>
            <td data-label="Now">{before}</td>
            <td data-label="Then">
              <b>{after}</b>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function LastQuestion({ danger: { consequence, typed }, fault }: { danger: Danger; fault: string | null }) {
  const common = {
    id: "field-typed",
    name: "typed",
    required: true,
    autofocus: fault !== null,
    "aria-invalid": fault === null ? undefined : "true",
    "aria-describedby": fault === null ? undefined : "typed-fault",
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
              To go on, type <code>{typed}</code>
            </label>
            <input {...common} type="text" autocomplete="off" spellcheck={false} />
          </>
        )}
      {fault === null ? null : <p id="typed-fault" class="fault" role="alert">{fault}</p>}
    </div>
  );
}

function isShown(value: unknown): value is Shown {
  return typeof value === "object" && value !== null && "content" in value && "title" in value;
}
