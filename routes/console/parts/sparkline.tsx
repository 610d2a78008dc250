// A line of numbers as small as a word, drawn on the server: a bar for each day, the newest on the right.

/** A line of bars, each as high as its share of the highest. `label` says the same in words. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(...values, Number.MIN_VALUE);
  const height = (value: number) => value <= 0 ? 0 : Math.max(Math.round(value / most * 100) / 5, 1);
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${values.length * 4} 20`}
      preserveAspectRatio="none"
    >
      {values.map((value, place) => (
        <rect x={place * 4} y={20 - height(value)} width={3} height={height(value)} />
      ))}
    </svg>
  );
}
