// The filter of a list: a form whose fields become the query of the page.

import type { Child } from "hono/jsx";

/** The form, with a link to the whole list where it is filtered. */
export function Filter({ path, isFiltered = false, children }: {
  path: string;
  isFiltered?: boolean;
  children: Child;
}) {
  return (
    <form class="fields filter" method="get" action={path}>
      {children}
      <div class="field">
        <button type="submit">Apply</button>
        {isFiltered ? <a class="button" href={path}>Clear filters</a> : null}
      </div>
    </form>
  );
}

/** A field for an ID or a name, which is matched exactly. */
export function FilterText({ name, label, value, placeholder }: {
  name: string;
  label: string;
  value: string | null | undefined;
  placeholder?: string;
}) {
  const id = `filter-${name}`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        name={name}
        value={value ?? ""}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
      />
    </div>
  );
}

/** A choice; a value that is no option, such as one from a link, is one too. */
export function FilterSelect<Value extends string>({ name, label, none, options, value, textOf = String }: {
  name: string;
  label: string;
  /** The text of no choice. */
  none: string;
  options: readonly Value[];
  value: Value | undefined;
  textOf?: (value: Value) => string;
}) {
  const id = `filter-${name}`;
  const all = value === undefined || options.includes(value) ? options : [value, ...options];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name}>
        <option value="">{none}</option>
        {all.map((each) => <option value={each} selected={each === value}>{textOf(each)}</option>)}
      </select>
    </div>
  );
}
