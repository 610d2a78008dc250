// A line of a few numbers beside a text, such as the usage of the last days. It needs no script.

/** @param label what the numbers are, for screen readers */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(...values, 0);
  if (values.length < 2 || most <= 0) return null;
  const points = values.map((value, place) => `${place},${rounded(20 - value / most * 18)}`);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${values.length - 1} 21`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}

/** Two decimal places: more would only be bytes. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
