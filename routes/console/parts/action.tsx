// Actions of operators on users and apps. Each has three steps: a form, a preview of the effect, and the confirmed action.
// A preview carries a hash of what it says and of what it was made from. If that has changed before the operator confirms,
// the new preview is shown and nothing is done. The hash is compared just before the call, which locks nothing for that
// long and decides by the state that it meets.

import { hashOf } from "../../../src/process/secrets/hash.ts";
import type { Refusal } from "../../../src/domain/values/refusal.ts";
import { STATUS } from "../../http/errors.ts";
import type { AnswerOf, InputOf, KeyedDefinition, KeylessDefinition } from "../../contract/definition.ts";
import type { ApiAnswer } from "./ask.ts";
import { appOf } from "./subject.tsx";
import { ActionForm, ActionPreview, type Preview, TICKED } from "./action_pages.tsx";
import { type Fault, faultsOf, type Field, type FormInput, type Values, valuesOf } from "./form.tsx";
import type { Crumb } from "./page.tsx";
import type { Session } from "./session.ts";
import {
  type ActionRoute,
  mayMake,
  type PageContent,
  type PageRequest,
  type PageResult,
  type PageRoute,
} from "./page_context.ts";

/** An action of operators by a call of the API. `Subject` is what it is about, such as a user with the catalog. */
export interface Action<Subject, Call extends ApiCall> {
  /** The path of the form; its steps are posted to the same path. */
  readonly path: string;
  readonly title: string;
  /** Reads the subject; throws a `PageError` where there is nothing to do. */
  readonly load: (request: PageRequest) => Promise<Subject> | Subject;
  readonly location: (subject: Subject, request: PageRequest) => {
    readonly crumbs: readonly Crumb[];
    /** The path of the page that offers the action, and that follows it. */
    readonly back: string;
  };
  /** The fields of the form; the query fills fields of the same names. Without any, the preview is the first step. */
  readonly fields: (subject: Subject) => readonly Field[];
  /** The sentence above the form. */
  readonly intro?: (subject: Subject) => string;
  readonly call: Call;
  /** The input of the call. It is checked before the preview. */
  readonly input: (subject: Subject, values: Values) => FormInput<InputOf<Call>>;
  readonly preview: (
    request: PageRequest,
    subject: Subject,
    values: Values,
  ) => Promise<Preview | readonly Fault[]> | Preview | readonly Fault[];
  /** The result: a sentence for the page that follows, or a page of its own, such as one with a new secret. */
  readonly done: (subject: Subject, values: Values, answer: AnswerOf<Call>) => string | PageContent;
  /** The user that it changes, for the audit log. */
  readonly userId?: (subject: Subject) => string;
}

type ApiCall = KeyedDefinition | KeylessDefinition;

/** The step that a form asks for. */
type Step = "form" | "preview" | "confirm";

/** The routes of an action: its page, and the steps that are posted to it. */
export function actionRoutes<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
): { readonly page: PageRoute; readonly action: ActionRoute } {
  return {
    page: { path: action.path, show: (request) => showAction(action, request) },
    action: { path: action.path, call: action.call, run: (request) => runAction(action, request) },
  };
}

type Once = { readonly once: string };

/** What an operator without the role for an action reads. */
export function notAllowed({ operator: { role } }: Session): string {
  return role === "agent"
    ? "Your role may grant credits and release holds, and nothing else."
    : "You have read-only access.";
}

async function showAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest,
): Promise<PageResult> {
  if (!mayMake(request.session, action.call)) {
    const text = notAllowed(request.session);
    return { title: "Not allowed", content: <p class="note warn">{text}</p>, status: 403 };
  }
  const subject = await action.load(request);
  const fields = action.fields(subject);
  const values = valuesOf(fields, request.query, true);
  return hasInput(fields)
    ? showForm(action, request, subject, values)
    : await showPreview(action, request, subject, values);
}

async function runAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest & Once,
): Promise<PageResult> {
  const subject = await action.load(request);
  const values = valuesOf(action.fields(subject), request.form);
  const step = request.form.get("step") as Step | null;
  if (step === "confirm") return await confirmAction(action, request, subject, values);
  if (step === "form") return showForm(action, request, subject, values);
  return await showPreview(action, request, subject, values);
}

async function confirmAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest & Once,
  subject: Subject,
  values: Values,
): Promise<PageResult> {
  const preview = await previewOf(action, request, subject, values);
  if (!("verb" in preview)) return showForm(action, request, subject, values, preview);
  if (request.form.get("fingerprint") !== fingerprintOf(preview, values)) {
    return showPreview(action, request, subject, values, { preview, note: CHANGED });
  }
  const { danger } = preview;
  if (danger !== undefined && request.form.get("typed") !== (danger.typed ?? TICKED)) {
    const typedFault = danger.typed === null ? "Confirm to continue" : `Type "${danger.typed}"`;
    return showPreview(action, request, subject, values, { preview, typedFault });
  }
  const answer = await callApi(action, request, subject, values, preview);
  if (!answer.ok) return failedAction(action, request, subject, values, answer.error);
  const result = action.done(subject, values, answer.data as AnswerOf<Call>);
  if (typeof result !== "string") return { ...result, isDone: true };
  return { to: action.location(subject, request).back, note: result, isDone: true };
}

function callApi<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest & Once,
  subject: Subject,
  values: Values,
  preview: Preview,
): Promise<ApiAnswer<unknown>> {
  const { ask, once } = request;
  const call: ApiCall = action.call;
  // The schema of the call checks it.
  const input = action.input(subject, values) as never;
  if (isKeyless(call)) return ask.admin(call, input);
  return ask.app(appOf(request), call, input, once, {
    userId: action.userId?.(subject) ?? null,
    before: sideOf(preview, "before"),
    after: sideOf(preview, "after"),
  });
}

function isKeyless(call: ApiCall): call is KeylessDefinition {
  return call.access === "admin" || call.access === "open";
}

const CHANGED = "Something changed since this preview, so nothing was done. This is the effect now.";

function failedAction<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest & Once,
  subject: Subject,
  values: Values,
  refusal: Refusal,
): Promise<PageResult> | PageResult {
  const { once } = request;
  // Whether it was done is unknown: under the same key it happens once.
  if (STATUS[refusal.code] >= 500 && refusal.code !== "not_implemented") {
    const note = `${refusal.message}. Confirm again: even if it was already done, it happens only once.`;
    return showPreview(action, request, subject, values, { note, once, status: STATUS[refusal.code] });
  }
  const fields = action.fields(subject);
  return showForm(action, request, subject, values, faultsOf(refusal, fields), STATUS[refusal.code]);
}

async function previewOf<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest,
  subject: Subject,
  values: Values,
): Promise<Preview | readonly Fault[]> {
  const fault = request.ask.inputFault(action.call, action.input(subject, values));
  if (fault !== null) return faultsOf(fault, action.fields(subject));
  return await action.preview(request, subject, values);
}

/** The hash of everything that a preview says and was made from. */
function fingerprintOf({ sentences, changes, basis, danger }: Preview, values: Values): string {
  return hashOf(JSON.stringify([sentences, changes, basis ?? null, danger ?? null, Object.entries(values)]));
}

/** The changes of a preview for the audit log, in the words that the operator read. */
function sideOf({ changes }: Preview, side: "before" | "after"): Record<string, string> {
  return Object.fromEntries(changes.map((change) => [change.what, change[side]]));
}

function showForm<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest,
  subject: Subject,
  values: Values,
  faults: readonly Fault[] = [],
  status = faults.length > 0 ? 400 : 200,
): PageContent {
  const { title } = action;
  const { crumbs, back } = action.location(subject, request);
  return {
    title,
    crumbs: [...crumbs, { title, href: null }],
    status,
    content: (
      <ActionForm
        request={request}
        title={title}
        intro={action.intro?.(subject)}
        fields={action.fields(subject)}
        values={values}
        faults={faults}
        back={back}
      />
    ),
  };
}

/** How a preview differs from the first one of its form. */
interface Repeated {
  readonly preview?: Preview;
  readonly note?: string;
  readonly typedFault?: string;
  readonly once?: string;
  readonly status?: number;
}

async function showPreview<Subject, Call extends ApiCall>(
  action: Action<Subject, Call>,
  request: PageRequest,
  subject: Subject,
  values: Values,
  { note, typedFault, once, status, ...repeated }: Repeated = {},
): Promise<PageContent> {
  const preview = repeated.preview ?? await previewOf(action, request, subject, values);
  if (!("verb" in preview)) return showForm(action, request, subject, values, preview);
  const { title } = action;
  const { crumbs, back } = action.location(subject, request);
  return {
    title,
    crumbs: [...crumbs, { title, href: null }],
    status: status ?? (note !== undefined ? 409 : typedFault !== undefined ? 400 : 200),
    content: (
      <ActionPreview
        request={request}
        title={title}
        preview={preview}
        values={{ ...values, fingerprint: fingerprintOf(preview, values) }}
        hasForm={hasInput(action.fields(subject))}
        back={back}
        note={note}
        typedFault={typedFault}
        once={once}
      />
    ),
  };
}

/** Whether a form has fields to fill in. */
function hasInput(fields: readonly Field[]): boolean {
  return fields.some(({ kind }) => kind !== "hidden" && kind !== "fixed");
}
