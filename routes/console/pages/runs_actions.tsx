// The action that ends a run.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { textIn } from "../parts/form.tsx";
import { dataOf, loadUser, PageError, tabLocation, type UserSubject } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { endRun, getRun } from "../../contract/runs.ts";

interface RunSubject extends UserSubject {
  readonly run: AnswerOf<typeof getRun>;
}

const end: Action<RunSubject, typeof endRun> = {
  path: "/console/apps/:appId/:mode/users/:userId/runs/:runId/end",
  title: "End run",
  load: async (request) => {
    const subject = await loadUser(request);
    const { runId = "" } = request.params;
    const run = await request.ask.app(subject.app, getRun, { runId }).then(dataOf);
    if (run.userId !== subject.user.userId) {
      throw new PageError({ code: "not_found", message: "Run not found" });
    }
    if (run.status === "active") return { ...subject, run };
    throw new PageError({ code: "run_ended", message: "This run has already ended." }, "Nothing to end");
  },
  location: tabLocation("/activity"),
  intro: ({ user, run }) => `The run ${nameOf(run)} of ${user.userId}.`,
  fields: () => [{ name: "reason", label: "Reason", kind: "long", hint: "Stored with the run." }],
  call: endRun,
  input: ({ run }, values) => ({ runId: run.runId, reason: textIn(values["reason"] ?? "") }),
  preview: (_, { run }) => ({
    sentences: ["Runs within it end too. Open holds are settled as usual."],
    changes: [{ what: `Run ${nameOf(run)}`, before: "active", after: "ended" }],
    danger: { consequence: "Every call with this run is refused from now on.", typed: null },
    verb: "End run",
  }),
  done: ({ run }) => `The run ${nameOf(run)} has ended.`,
};

function nameOf({ runId, name }: RunSubject["run"]): string {
  return name ?? runId;
}

/** The action on runs. */
export const RUN_ACTIONS = [actionRoutes(end)];
