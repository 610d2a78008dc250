// The commands of `deno task admin` about the people behind ids.

import { findPersonLinks, listCoveredIds } from "../../routes/contract/admin_users.ts";
import { commandOf, type Groups } from "./admin_call.ts";
import { safeText, tableOf } from "./table.ts";

/** The group of commands. */
export const PEOPLE_GROUP: Groups[string] = ["Look at the people behind ids.", [
  commandOf(
    "find-links",
    findPersonLinks,
    ({ people, hasMore }) => {
      if (people.length === 0) return "No metered ids are joined by a link without a maker.";
      const table = tableOf(
        [["person", ({ personId }) => personId], [
          "metered ids",
          ({ distinctIds }) => distinctIds.join(", "),
        ]],
        people,
      );
      return hasMore ? `${table}\nThere are more.` : table;
    },
    "admin people find-links --app app_1 --mode live",
  ),
  commandOf(
    "covered-ids",
    listCoveredIds,
    ({ exported, deleted }) => {
      const line = (words: string, ids: readonly string[]) => `${words}: ${ids.map(safeText).join(", ")}`;
      return [line("exported", exported), line("deleted", deleted)].join("\n");
    },
    "admin people covered-ids user_1 --app app_1 --mode live",
  ),
]];
