// The features of a user, with the user whose subscription gives each.

import type { FeatureValue } from "../../../src/domain/catalog/feature.ts";
import { userPath } from "../parts/page.tsx";
import type { UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";

const SOURCES = {
  custom: "custom value of the subscription",
  plan: "plan",
  addon: "add-on",
  default: "default of the catalog",
} as const;

/** A value as people read it. */
export function featureText(value: FeatureValue | undefined): string {
  if (value === undefined) return "none";
  if (typeof value === "boolean") return value ? "on" : "off";
  const text = typeof value === "object" ? value.join(", ") : String(value);
  return text === "" ? "empty" : text;
}

/** The features in force; nothing for a catalog without features. */
export function FeaturesCard({ subject: { app, user } }: { subject: UserSubject }) {
  const { features } = user;
  if (features === undefined) return null;
  const rows = Object.entries(features).map(([key, feature]) => ({ key, ...feature }));
  return (
    <section class="card" aria-labelledby="features">
      <h2 id="features">Features</h2>
      <Table
        empty="No features"
        rows={rows}
        columns={[
          { head: "Feature", cell: ({ key }) => <code>{key}</code> },
          { head: "Value", cell: ({ value }) => featureText(value) },
          {
            head: "From",
            cell: ({ from, of }) =>
              of === null || of === user.userId ? SOURCES[from] : (
                <>
                  {SOURCES[from]} of <a href={userPath(app, of)}>{of}</a>
                </>
              ),
          },
        ]}
      />
    </section>
  );
}
