// The form above a list that narrows it: its fields are the address's query.

import type { Child } from "hono/jsx";

/** The form, with its button and, where the list is narrowed, the way back to all of it. */
export function Filter({ path, isFiltered = false, children }: {
  path: string;
  isFiltered?: boolean;
  children: Child;
}) {
  return (
    <form class="fields filter" method="get" action={path}>
      {children}
      <div class="field">
        <button type="submit">Show</button>
        {isFiltered ? <a class="button" href={path}>Show all</a> : null}
      </div>
    </form>
  );
}

/** A field for an id or a name, which is compared exactly. */
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
