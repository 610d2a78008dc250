// Links above a list that choose what it shows.

/** One link for each value of a member of the query, with the chosen one marked. A value of undefined leaves it out. */
export function Choices({ label, path, name, options, chosen }: {
  label: string;
  path: string;
  /** The member of the query. */
  name: string;
  options: readonly { readonly value: string | undefined; readonly text: string }[];
  chosen: string | undefined;
}) {
  return (
    <nav class="choices" aria-label={label}>
      {options.map(({ value, text }) => (
        <a
          href={value === undefined ? path : `${path}?${name}=${encodeURIComponent(value)}`}
          aria-current={value === chosen ? "true" : undefined}
        >
          {text}
        </a>
      ))}
    </nav>
  );
}

/** Links to all rows, and to those of each status. */
export function StatusChoices({ label, path, statuses, chosen }: {
  label: string;
  path: string;
  statuses: readonly string[];
  chosen: string | undefined;
}) {
  const options = [undefined, ...statuses].map((value) => ({ value, text: value ?? "all" }));
  return <Choices label={label} path={path} name="status" options={options} chosen={chosen} />;
}
