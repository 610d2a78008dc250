// Forms: fields, the values that were sent, and the errors of each field.

import { randomText } from "../../../src/process/secrets/random.ts";
import type { FieldFault, Refusal } from "../../../src/domain/values/refusal.ts";
import { csrfToken, type Session } from "./session.ts";

/** A field of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** "time" is a time in UTC, "fixed" a value that is shown and sent but not edited, "secret" a password field. */
  readonly kind: "text" | "secret" | "number" | "time" | "long" | "select" | "checkbox" | "fixed" | "hidden";
  /** The initial value. */
  readonly value?: string;
  /** The options of a "select". */
  readonly options?: readonly { readonly value: string; readonly text: string }[];
  readonly hint?: string;
  readonly isRequired?: boolean;
}

/** The values of a form by the names of its fields; a checkbox is "yes" or "". */
export type Values = Readonly<Record<string, string>>;

/** The input of a call from a form: any value may be text or a number that the call's schema refuses. */
export type FormInput<Input> = Input extends object
  ? { readonly [Name in keyof Input]: FormInput<Input[Name]> }
  : Input | string | number | undefined;

/** An error in a form. */
export interface Fault {
  /** The name of the field; null for the form as a whole. */
  readonly field: string | null;
  readonly message: string;
}

const ONCE_LENGTH = 24;

/** The hidden fields of every form that changes something: the session's CSRF token, and a key by which it is done once. */
export function FormKeys({ session, once }: { session: Session; once?: string | undefined }) {
  return (
    <>
      <input type="hidden" name="csrf" value={csrfToken(session)} />
      <input type="hidden" name="once" value={once ?? randomText(ONCE_LENGTH)} />
    </>
  );
}

/** The values of fields in a form that was sent, or in the query that fills a new form. */
export function valuesOf(fields: readonly Field[], sent: URLSearchParams, isFirst = false): Values {
  const values = fields.map(({ name, value = "" }): [string, string] => {
    const given = sent.get(name);
    return [name, given ?? (isFirst ? value : "")];
  });
  return Object.fromEntries(values);
}

/** The errors that a refused call names, each with its field. */
export function faultsOf({ message, details }: Refusal, fields: readonly Field[]): Fault[] {
  const named = Array.isArray(details) ? (details as Partial<FieldFault>[]) : [];
  const faults = named.flatMap((detail): Fault[] => {
    if (typeof detail.path !== "string" || typeof detail.message !== "string") return [];
    const field = fieldOf(detail.path, fields);
    return [{ field, message: field === null ? message : detail.message }];
  });
  if (faults.length > 0) return faults;
  // Some messages name the field only at their beginning.
  const head = message.split(": ", 1)[0] as string;
  const field = fieldOf(head, fields);
  return [{ field, message: field === null ? message : message.slice(head.length + 2) }];
}

/** The field for a path in a call's input: "limits.seats.quota" belongs to a field "limits.seats". */
function fieldOf(path: string, fields: readonly Field[]): string | null {
  const at = fields.filter(({ name, kind }) =>
    kind !== "hidden" && (path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`))
  );
  return at.toSorted((one, other) => other.name.length - one.name.length)[0]?.name ?? null;
}

/** The value of a field of kind "time" for the API; undefined for an empty field. */
export function timeIn(text: string): string | undefined {
  if (text === "") return undefined;
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return `${text}:00.000Z`;
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?$/.test(text) ? `${text}Z` : text;
}

/** A time as the value of a field of kind "time". */
export function timeField(at: string | null): string {
  return at === null ? "" : at.slice(0, 19);
}

/** A decimal number. Commas only part thousands: a decimal comma is refused, since 1,5 must not become 15. */
const NUMBER = /^[-+]?(?:\d*|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:e[-+]?\d+)?$/i;

/** The value of a field of kind "number"; undefined for an empty field, the text itself where it is not a number. */
export function numberIn(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const value = NUMBER.test(trimmed) ? Number(trimmed.replaceAll(",", "")) : NaN;
  return Number.isFinite(value) ? value : text;
}

/** The value of a text field; undefined for an empty field. */
export function textIn(text: string): string | undefined {
  return text === "" ? undefined : text;
}

/** The errors of the form as a whole. */
export function FormFaults({ faults }: { faults: readonly Fault[] }) {
  const whole = faults.filter(({ field }) => field === null);
  if (whole.length === 0) return null;
  return (
    <div class="note bad" role="alert">
      {whole.map(({ message }) => <p>{message}</p>)}
    </div>
  );
}

/** Fields with their labels, hints and errors. */
export function Fields(
  { fields, values, faults }: {
    fields: readonly Field[];
    values: Values;
    faults: readonly Fault[];
  },
) {
  const firstAtFault = fields.find(({ name }) => faults.some(({ field }) => field === name))?.name;
  return (
    <>
      {fields.map((field) => (
        <FieldLine
          field={field}
          value={values[field.name] ?? ""}
          faults={faults.filter((fault) => fault.field === field.name).map(({ message }) => message)}
          hasFocus={field.name === firstAtFault}
        />
      ))}
    </>
  );
}

function FieldLine(
  { field, value, faults, hasFocus }: {
    field: Field;
    value: string;
    faults: readonly string[];
    hasFocus: boolean;
  },
) {
  const { name, label, kind, hint } = field;
  if (kind === "hidden") return <input type="hidden" name={name} value={value} />;
  if (kind === "fixed") {
    return (
      <div class="field">
        <span class="label">{label}</span>
        <div class="fixed">{field.options?.find((option) => option.value === value)?.text ?? value}</div>
        <input type="hidden" name={name} value={value} />
        <Faults id={`${name}-fault`} faults={faults} />
      </div>
    );
  }
  const id = `field-${name}`;
  const described = [
    ...(faults.length > 0 ? [`${name}-fault`] : []),
    ...(hint === undefined ? [] : [`${name}-hint`]),
  ].join(" ");
  const common = {
    id,
    name,
    required: field.isRequired === true,
    autofocus: hasFocus,
    "aria-invalid": faults.length > 0 ? "true" : undefined,
    "aria-describedby": described === "" ? undefined : described,
  } as const;
  return (
    <div class={kind === "checkbox" ? "field check" : "field"}>
      <label for={id}>
        {label}
        {kind === "time" ? <span class="soft utc">(UTC)</span> : null}
      </label>
      {control(field, value, common)}
      {hint === undefined ? null : <p class="hint" id={`${name}-hint`}>{hint}</p>}
      <Faults id={`${name}-fault`} faults={faults} />
    </div>
  );
}

function control({ kind, options = [] }: Field, value: string, common: Record<string, unknown>) {
  switch (kind) {
    case "select":
      return (
        <select {...common}>
          {options.map((option) => (
            <option value={option.value} selected={option.value === value}>{option.text}</option>
          ))}
        </select>
      );
    case "long":
      return <textarea {...common} rows={3}>{value}</textarea>;
    case "checkbox":
      return <input {...common} type="checkbox" value="yes" checked={value === "yes"} />;
    case "time":
      return <input {...common} type="datetime-local" step="1" value={value} />;
    case "secret":
      return <input {...common} type="password" autocomplete="off" />;
    case "number":
      return <input {...common} inputmode="decimal" autocomplete="off" value={value} />;
    default:
      return <input {...common} type="text" autocomplete="off" spellcheck={false} value={value} />;
  }
}

function Faults({ id, faults }: { id: string; faults: readonly string[] }) {
  if (faults.length === 0) return null;
  return <p id={id} class="fault" role="alert">{faults.join("; ")}</p>;
}
