// What is done to a user as a person: merging two ids, opting out and in, export and erasure.

import { type Act, actAt } from "../parts/action.tsx";
import { timeLabel } from "../parts/format.tsx";
import type { Values } from "../parts/form.tsx";
import { userPath } from "../parts/page.tsx";
import { aboutUser, placeOfUser, type UserSubject } from "../parts/subject.tsx";

/** What a person may opt out of. */
export const SCOPES = ["analytics", "ai_personalization", "prompt_logging"] as const;
export type Scope = typeof SCOPES[number];

/** The report of a merge as the API shows it. */
export interface ShownMerge {
  readonly mergeId: string | null;
  readonly from: string;
  readonly to: string;
  readonly alreadyMerged: boolean;
  readonly historyPending: boolean;
  readonly billableOperations: number;
  readonly moved: Readonly<Record<string, number>>;
  readonly conflicts: {
    readonly counters: {
      readonly summed: number;
      readonly carried: readonly { readonly fromGroupId: string; readonly toGroupId: string }[];
      readonly unpaired: readonly string[];
    };
    readonly subscriptions: {
      readonly primary: { readonly planName: string };
      readonly duplicates: readonly { readonly planName: string }[];
    } | null;
    readonly endedSubscriptions: readonly { readonly planName: string }[];
    readonly credits: readonly { readonly externalRef: string; readonly overage: number }[];
  };
  readonly analytics: "linked" | "already_linked" | "skipped_consent_required";
}

function pairOf({ user }: UserSubject, values: Values) {
  const other = values["other"] ?? "";
  return values["direction"] === "into" ? { from: user.userId, to: other } : { from: other, to: user.userId };
}

function mergeMembers(subject: UserSubject, values: Values) {
  return { ...pairOf(subject, values), consentGiven: values["consentGiven"] === "yes" ? true : undefined };
}

const merge: Act<UserSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/merge",
  title: "Merge with another id",
  about: aboutUser,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ user }) => `Two ids of one person become one user. This one is ${user.userId}.`,
  fields: ({ user }) => [
    { name: "other", label: "The other id", kind: "text", isRequired: true, hint: "Exact, capitals too." },
    {
      name: "direction",
      label: "Which id stays",
      kind: "select",
      value: "here",
      options: [
        { value: "here", text: `${user.userId} stays, the other becomes its alias` },
        { value: "into", text: `The other stays, ${user.userId} becomes its alias` },
      ],
    },
    {
      name: "consentGiven",
      label: "The person agreed to link an anonymous session",
      kind: "checkbox",
      hint: "Asked only where an id begins with anon_.",
    },
  ],
  call: (subject, values) => ({ id: "aliasCustomer", members: mergeMembers(subject, values) }),
  preview: async ({ ask }, subject, values) => {
    const members = mergeMembers(subject, values);
    const dry = await ask.app<ShownMerge>(subject.app, "aliasCustomer", { ...members, dryRun: true });
    if (!dry.ok) return [{ field: "other", message: dry.error.message }];
    const { from, to, alreadyMerged } = dry.data;
    if (alreadyMerged) return [{ field: "other", message: "These two ids are one user already" }];
    return {
      sentences: [
        `${from} becomes an alias of ${to}. From then on both ids are the same user.`,
        ...mergeSentences(dry.data),
      ],
      changes: movedRows(dry.data).map(([what, count]) => ({
        what,
        before: from,
        after: `${to} (${count})`,
      })),
      ground: dry.data,
      danger: {
        consequence: `No merge can be taken apart again: what ${from} had is ${to}'s for good.`,
        typed: from,
      },
      verb: "Merge",
    };
  },
  done: (_, __, answer) => {
    const { from, to, historyPending } = answer as ShownMerge;
    const rest = historyPending ? " Older history follows within minutes; it shows at once." : "";
    return `${from} is an alias of ${to} now.${rest}`;
  },
};

const MOVED_WORDS: Readonly<Record<string, string>> = {
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
};

/** What a merge moves, in words, without what it moves nothing of. */
export function movedRows({ moved }: ShownMerge): [what: string, count: number][] {
  return Object.entries(MOVED_WORDS).flatMap(([name, what]) => {
    const count = moved[name] ?? 0;
    return count === 0 ? [] : [[what, count] as [string, number]];
  });
}

/** What meets in a merge, in sentences. */
export function mergeSentences({ conflicts, analytics, billableOperations }: ShownMerge): string[] {
  const { counters, subscriptions, endedSubscriptions, credits } = conflicts;
  const names = (rows: readonly { readonly planName: string }[]) =>
    rows.map(({ planName }) => planName).join(", ");
  const pairs = counters.carried.map(({ fromGroupId, toGroupId }) => `${fromGroupId} to ${toGroupId}`);
  const sentences = [
    counters.summed > 0 ? `Usage of ${counters.summed} limits adds up.` : "",
    pairs.length > 0 ? `Usage is carried over: ${pairs.join(", ")}.` : "",
    counters.unpaired.length > 0 ? `Nothing takes over the usage of ${counters.unpaired.join(", ")}.` : "",
    subscriptions === null
      ? ""
      : `Several subscriptions are active then: ${subscriptions.primary.planName} decides, beside ${
        names(subscriptions.duplicates)
      }.`,
    endedSubscriptions.length > 0 ? `Subscriptions that end: ${names(endedSubscriptions)}.` : "",
    credits.length > 0
      ? `Credits of the same reference become one: ${
        credits.map(({ externalRef }) => externalRef).join(", ")
      }.`
      : "",
    analytics === "skipped_consent_required"
      ? "Their analytics people stay apart: an anonymous session is linked only with consent."
      : "",
    billableOperations > 0 ? `It counts against the workspace's operations: ${billableOperations}.` : "",
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
  analytics: "Their analytics are kept under a pseudonym from now on.",
  ai_personalization: "Their events leave the feed, and nothing is composed for them.",
  prompt_logging: "Their prompts and answers are not kept from now on.",
};

function consentAct(isOut: boolean): Act<UserSubject> {
  return {
    path: `/console/apps/:appId/:mode/users/:userId/opt-${isOut ? "out" : "in"}`,
    title: isOut ? "Opt out" : "Opt in",
    about: aboutUser,
    place: placeOfUser,
    userId: ({ user }) => user.userId,
    lead: ({ user }) => `${user.userId}. Metering goes on either way.`,
    fields: () => [{ name: "scope", label: "Scope", kind: "select", value: "all", options: SCOPE_OPTIONS }],
    call: ({ user }, values) => ({
      id: isOut ? "optOut" : "optIn",
      members: { distinctId: user.userId, scope: values["scope"] },
    }),
    preview: async ({ ask }, { app, user }, values) => {
      const changes = [];
      for (const scope of SCOPES_OF[values["scope"] ?? ""] ?? []) {
        const answer = await ask.app<{ optedOut: boolean }>(app, "isOptedOut", {
          distinctId: user.userId,
          scope,
        });
        if (!answer.ok) return [{ field: "scope", message: answer.error.message }];
        const before = answer.data.optedOut ? "opted out" : "in";
        const after = isOut ? "opted out" : "in";
        if (before !== after) changes.push({ what: scope.replaceAll("_", " "), before, after, scope });
      }
      if (changes.length === 0) {
        return [{
          field: "scope",
          message: `Nothing changes: they are ${isOut ? "opted out" : "in"} already`,
        }];
      }
      return {
        sentences: isOut
          ? changes.map(({ scope }) => OUT_WORDS[scope])
          : ["What they opted out of begins again. What was not kept meanwhile does not come back."],
        changes,
        verb: isOut ? "Opt out" : "Opt in",
      };
    },
    done: ({ user }) => `${user.userId} is opted ${isOut ? "out" : "in"}.`,
  };
}

const exportAct: Act<UserSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/export",
  title: "Export everything",
  about: aboutUser,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  fields: () => [],
  call: ({ user }) => ({ id: "exportPerson", members: { distinctId: user.userId } }),
  preview: (_, { user }) => ({
    sentences: [
      `A link to everything that is kept of ${user.userId}: person, analytics events, metering events and consents.`,
      "It works for 24 hours, and whoever has it can open it. Send it to nobody but the person.",
    ],
    changes: [],
    verb: "Make the link",
  }),
  done: ({ app, user }, _, answer) => {
    const { downloadUrl, expiresAt } = answer as { readonly downloadUrl: string; readonly expiresAt: string };
    return {
      title: "Export",
      content: (
        <section class="sheet act">
          <h1>The export of {user.userId}</h1>
          <p>
            <a href={downloadUrl}>Download it</a>, or copy the link. It works until {timeLabel(expiresAt)}
            {" "}
            and does not show again.
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

const erase: Act<UserSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/erase",
  title: "Erase",
  about: aboutUser,
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  fields: () => [],
  call: ({ user }) => ({ id: "deletePerson", members: { distinctId: user.userId } }),
  preview: (_, { user }) => ({
    sentences: [
      `Everything of ${user.userId} is erased: subscriptions, usage, credits, events, prompts, analytics and consents.`,
      user.aliases.length === 0
        ? "No other id goes with it, unless analytics know one of the same person."
        : `These ids go with it: ${user.aliases.join(", ")}.`,
      "They are hidden at once and erased soon after. A call for the id after that makes a new user.",
    ],
    changes: [{
      what: "What is kept",
      before: "everything",
      after: "that consent was given or taken, under a keyed hash",
    }],
    ground: { aliases: user.aliases },
    danger: {
      consequence: "Nothing of it comes back, paid credits and a running subscription neither.",
      typed: user.userId,
    },
    verb: "Erase",
  }),
  done: ({ user }, _, answer) =>
    `The erasure of ${user.userId} is queued as ${(answer as { jobId: string }).jobId}.`,
};

/** The acts on people. */
export const PEOPLE_ACTS = [
  actAt(merge),
  actAt(consentAct(true)),
  actAt(consentAct(false)),
  actAt(exportAct),
  actAt(erase),
];
