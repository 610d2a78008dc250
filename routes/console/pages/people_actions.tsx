// Actions on a user as a person: merge two IDs, opt out and in, export and delete the person's data.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { timeLabel } from "../parts/format.tsx";
import type { Values } from "../parts/form.tsx";
import { userPath } from "../parts/page.tsx";
import { dataOf, loadUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { listCoveredIds } from "../../contract/admin_users.ts";
import { aliasCustomer } from "../../contract/customers.ts";
import { exportPerson } from "../../contract/export.ts";
import { deletePerson, isOptedOut, optIn, optOut } from "../../contract/privacy.ts";

/** The scopes of consent. */
export const SCOPES = ["analytics", "ai_personalization", "prompt_logging"] as const;
export type Scope = typeof SCOPES[number];

/** The report of a merge as the API returns it. */
type ShownMerge = AnswerOf<typeof aliasCustomer>;

function pairOf({ user }: UserSubject, values: Values) {
  const other = values["other"] ?? "";
  return values["direction"] === "into" ? { from: user.userId, to: other } : { from: other, to: user.userId };
}

function mergeMembers(subject: UserSubject, values: Values) {
  return { ...pairOf(subject, values), consentGiven: values["consentGiven"] === "yes" ? true : undefined };
}

const merge: Action<UserSubject, typeof aliasCustomer> = {
  path: "/console/apps/:appId/:mode/users/:userId/merge",
  title: "Merge with another ID",
  load: loadUser,
  location: userLocation,
  intro: ({ user }) => `Two IDs of one person become one user. This ID is ${user.userId}.`,
  fields: ({ user }) => [
    { name: "other", label: "Other ID", kind: "text", isRequired: true, hint: "Case-sensitive." },
    {
      name: "direction",
      label: "ID to keep",
      kind: "select",
      value: "here",
      options: [
        { value: "here", text: `Keep ${user.userId}, the other ID becomes its alias` },
        { value: "into", text: `Keep the other ID, ${user.userId} becomes its alias` },
      ],
    },
    {
      name: "consentGiven",
      label: "The person consented to linking an anonymous session",
      kind: "checkbox",
      hint: "Only needed for IDs that begin with anon_.",
    },
  ],
  call: aliasCustomer,
  input: (subject, values) => (mergeMembers(subject, values)),
  preview: async ({ ask }, subject, values) => {
    const members = mergeMembers(subject, values);
    const dry = await ask.app(subject.app, aliasCustomer, { ...members, dryRun: true });
    if (!dry.ok) return [{ field: "other", message: dry.error.message }];
    const { from, to, alreadyMerged } = dry.data;
    if (alreadyMerged) return [{ field: "other", message: "These two IDs are already one user" }];
    return {
      sentences: [
        `${from} becomes an alias of ${to}. Both IDs will be the same user.`,
        ...mergeSentences(dry.data),
      ],
      changes: movedRows(dry.data).map(([what, count]) => ({
        what,
        before: from,
        after: `${to} (${count})`,
      })),
      basis: dry.data,
      danger: {
        consequence: `A merge cannot be split: everything of ${from} becomes part of ${to}.`,
        typed: from,
      },
      verb: "Merge",
    };
  },
  done: (_, __, { from, to, historyPending }) => {
    const rest = historyPending
      ? " Older history is moved within minutes; pages show all of it meanwhile."
      : "";
    return `${from} is now an alias of ${to}.${rest}`;
  },
};

const MOVED_WORDS: Partial<Record<keyof ShownMerge["moved"], string>> = {
  subscriptions: "Subscriptions",
  counters: "Counters",
  reservations: "Reservations",
  creditBalances: "Credit balances",
  events: "Events",
  eventLogs: "Prompts",
  subscriptionEvents: "Subscription history",
  creditLedger: "Ledger entries",
  composeGenerations: "Generations",
  aliasesRepointed: "Aliases",
  movedChildren: "Users directly below",
};

/** The kinds of rows that a merge moves, with their counts above 0. */
export function movedRows({ moved }: ShownMerge): [what: string, count: number][] {
  return Object.entries(MOVED_WORDS).flatMap(([name, what]): [string, number][] => {
    const count = moved[name as keyof typeof moved];
    return count === undefined || count === 0 ? [] : [[what, count]];
  });
}

/** The effects of a merge in sentences. */
export function mergeSentences({ conflicts, analytics, billableOperations }: ShownMerge): string[] {
  const { counters, subscriptions, endedSubscriptions, credits } = conflicts;
  const names = (rows: readonly { readonly planName: string }[]) =>
    rows.map(({ planName }) => planName).join(", ");
  const pairs = counters.carried.map(({ fromGroupId, toGroupId }) => `${fromGroupId} to ${toGroupId}`);
  const sentences = [
    counters.summed > 0 ? `Usage of ${counters.summed} limits adds up.` : "",
    pairs.length > 0 ? `Usage is carried over: ${pairs.join(", ")}.` : "",
    counters.unpaired.length > 0
      ? `The usage of ${counters.unpaired.join(", ")} has no matching limit and is not carried over.`
      : "",
    subscriptions === null
      ? ""
      : `Several subscriptions will be active: ${subscriptions.primary.planName} is in force, beside ${
        names(subscriptions.duplicates)
      }.`,
    endedSubscriptions.length > 0 ? `Subscriptions that end: ${names(endedSubscriptions)}.` : "",
    credits.length > 0
      ? `Credits with the same reference become one balance: ${
        credits.map(({ externalRef }) => externalRef).join(", ")
      }.`
      : "",
    analytics === "skipped_consent_required"
      ? "Analytics of the two IDs stay separate: an anonymous session is linked only with consent."
      : "",
    billableOperations > 0 ? `Operations counted for the workspace: ${billableOperations}.` : "",
  ];
  return sentences.filter((sentence) => sentence !== "");
}

const SCOPE_OPTIONS = [
  { value: "all", text: "Analytics and personalization" },
  { value: "analytics", text: "Analytics" },
  { value: "ai_personalization", text: "Personalization" },
  { value: "prompt_logging", text: "Prompt logging" },
];

const SCOPES_OF: Readonly<Record<string, readonly Scope[]>> = {
  all: ["analytics", "ai_personalization"],
  analytics: ["analytics"],
  ai_personalization: ["ai_personalization"],
  prompt_logging: ["prompt_logging"],
};

const OUT_WORDS: Readonly<Record<Scope, string>> = {
  analytics: "New analytics events are stored under a pseudonym.",
  ai_personalization: "Events of this user are hidden from the feed, and compose is off for this user.",
  prompt_logging: "New prompts and responses are not stored.",
};

function consentAction(isOut: boolean): Action<UserSubject, typeof optOut | typeof optIn> {
  return {
    path: `/console/apps/:appId/:mode/users/:userId/opt-${isOut ? "out" : "in"}`,
    title: isOut ? "Opt out" : "Opt in",
    load: loadUser,
    location: userLocation,
    intro: ({ user }) => `For ${user.userId}. Metering continues in any case.`,
    fields: () => [{ name: "scope", label: "Scope", kind: "select", value: "all", options: SCOPE_OPTIONS }],
    call: isOut ? optOut : optIn,
    input: ({ user }, values) => ({ distinctId: user.userId, scope: values["scope"] }),
    preview: async ({ ask }, { app, user }, values) => {
      const changes = [];
      for (const scope of SCOPES_OF[values["scope"] ?? ""] ?? []) {
        const answer = await ask.app(app, isOptedOut, { distinctId: user.userId, scope });
        if (!answer.ok) return [{ field: "scope", message: answer.error.message }];
        const before = answer.data.optedOut ? "opted out" : "opted in";
        const after = isOut ? "opted out" : "opted in";
        if (before !== after) changes.push({ what: scope.replaceAll("_", " "), before, after, scope });
      }
      if (changes.length === 0) {
        return [{
          field: "scope",
          message: `No changes: already opted ${isOut ? "out" : "in"}`,
        }];
      }
      return {
        sentences: isOut
          ? changes.map(({ scope }) => OUT_WORDS[scope])
          : ["The chosen scopes are active again. Data that was not stored meanwhile stays missing."],
        changes,
        verb: isOut ? "Opt out" : "Opt in",
      };
    },
    done: ({ user }) => `${user.userId} is opted ${isOut ? "out" : "in"}.`,
  };
}

/** Reads the ids of the person that an export and a deletion cover. */
function readCovered({ ask }: PageRequest, { app: { appId, mode }, user: { userId } }: UserSubject) {
  return ask.admin(listCoveredIds, { appId, mode, userId }).then(dataOf);
}

/** A sentence with every other id that an action covers. */
function othersOf(userId: string, ids: readonly string[], words: string): string {
  const others = ids.filter((id) => id !== userId);
  return others.length === 0 ? "No other ID is of this person." : `${words}: ${others.join(", ")}.`;
}

const exportAction: Action<UserSubject, typeof exportPerson> = {
  path: "/console/apps/:appId/:mode/users/:userId/export",
  title: "Export user data",
  load: loadUser,
  location: userLocation,
  call: exportPerson,
  input: ({ user }) => ({ distinctId: user.userId }),
  preview: async (request, subject) => {
    const { user } = subject;
    const { exported } = await readCovered(request, subject);
    return {
      sentences: [
        `Creates a link to all data of ${user.userId}: person, analytics events, metering events and consents.`,
        othersOf(user.userId, exported, "Data of these IDs is included"),
        "The link is valid for 24 hours, for everyone who has it. Send it only to the person.",
      ],
      changes: [],
      basis: { exported },
      verb: "Create link",
    };
  },
  done: ({ app, user }, _, { downloadUrl, expiresAt }) => {
    return {
      title: "Export",
      content: (
        <section class="card form-card">
          <h1>Export of {user.userId}</h1>
          <p>
            <a href={downloadUrl}>Download</a>, or copy the link. It is valid until {timeLabel(expiresAt)}
            {" "}
            and is shown only once.
          </p>
          <pre>{downloadUrl}</pre>
          <div class="buttons">
            <a class="button" href={userPath(app, user.userId)}>Back to the user</a>
          </div>
        </section>
      ),
    };
  },
};

const deleteData: Action<UserSubject, typeof deletePerson> = {
  path: "/console/apps/:appId/:mode/users/:userId/erase",
  title: "Delete user data",
  load: loadUser,
  location: userLocation,
  call: deletePerson,
  input: ({ user }) => ({ distinctId: user.userId }),
  preview: async (request, subject) => {
    const { user } = subject;
    const { deleted } = await readCovered(request, subject);
    return {
      sentences: [
        `Deletes all data of ${user.userId}: subscriptions, usage, credits, events, prompts, analytics and consents.`,
        othersOf(user.userId, deleted, "These IDs are deleted with it"),
        "The data is hidden at once and deleted soon after. A later call for this ID creates a new user.",
      ],
      changes: [{
        what: "Stored data",
        before: "all data",
        after: "consent changes, under a keyed hash",
      }],
      basis: { deleted },
      danger: {
        consequence: "Nothing can be restored, including paid credits and an active subscription.",
        typed: user.userId,
      },
      verb: "Delete user data",
    };
  },
  done: ({ user }, _, { jobId }) => `The deletion of ${user.userId} is queued as ${jobId}.`,
};

/** The actions on people. */
export const PEOPLE_ACTIONS = [
  actionRoutes(merge),
  actionRoutes(consentAction(true)),
  actionRoutes(consentAction(false)),
  actionRoutes(exportAction),
  actionRoutes(deleteData),
];
