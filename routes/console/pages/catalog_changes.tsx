// The changes from one catalog to another: as a list, line by line, and how many users they affect.

import { type DiffLine, diffLines } from "../parts/line_diff.ts";
import { CATALOG_LIMITS } from "../../../src/process/catalog_limits.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import type { applyCatalog } from "../../contract/catalogs.ts";

/** The answer to a change of a catalog, or to its dry run. */
export type AppliedChange = AnswerOf<typeof applyCatalog>;

const CHANGES_MAX = 50;
const TAGS = { added: "good", changed: "warn", removed: "bad" } as const;
const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: " ", added: "+", removed: "-", gap: "⋯" };

/** The changed elements. */
export function ChangeList({ changes }: Pick<AppliedChange, "changes">) {
  return (
    <>
      <ul class="would-change">
        {changes.slice(0, CHANGES_MAX).map(({ path, id, change }) => (
          <li>
            <span class={`tag ${TAGS[change]}`}>{change}</span> <code>{path}</code>{" "}
            <span class="soft">{path.startsWith(id) ? "" : id}</span>
          </li>
        ))}
      </ul>
      {changes.length > CHANGES_MAX ? <p class="soft">and {changes.length - CHANGES_MAX} more</p> : null}
    </>
  );
}

/** The difference between two texts, line by line. */
export function LineDiff({ before, after }: { before: string; after: string }) {
  const lines = diffLines(before, after);
  if (lines === null) return <p class="soft">Too many changes for a line-by-line view</p>;
  return (
    <div class="diff" tabindex={0} role="region" aria-label="Line by line">
      {lines.map(({ kind, text }) => (
        <div class={kind}>
          <span>{SIGNS[kind]}</span>
          {kind === "added" ? <ins>{text}</ins> : kind === "removed" ? <del>{text}</del> : text}
        </div>
      ))}
    </div>
  );
}

/** Changes in one sentence. */
export function changesText(changes: AppliedChange["changes"], shownMax = 5): string {
  const shown = changes.slice(0, shownMax).map(({ path, id, change }) =>
    `${path}${path.startsWith(id) ? "" : ` (${id})`} ${change}`
  );
  const rest = changes.length - shown.length;
  return `${shown.join(", ")}${rest === 0 ? "" : ` and ${rest} more`}`;
}

/** How many users are on plans that change. */
export function affectedText({ usersAffected }: AppliedChange): string {
  if (usersAffected === undefined) return "";
  const count = (users: number | null) =>
    users === null ? "too many to count" : users >= COUNTED_MAX ? `${users} or more` : String(users);
  const { live, test } = usersAffected;
  if (live === 0 && test === 0) return "No user is on a plan that changes.";
  return `Users on plans that change: ${count(live)} in live mode, ${count(test)} in test mode.`;
}

const COUNTED_MAX = CATALOG_LIMITS.usersCountedMax;
