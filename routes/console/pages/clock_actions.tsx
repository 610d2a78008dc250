// The action that moves the clock of test mode.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { timeLabel } from "../parts/format.tsx";
import { numberIn, timeIn, type Values } from "../parts/form.tsx";
import { appPath, crumbsOf } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { appOf, dataOf, PageError, type UserSubject } from "../parts/subject.tsx";
import { getTestClock, moveTestClock } from "../../contract/test_clock.ts";

interface ClockSubject {
  readonly app: UserSubject["app"];
  readonly now: string;
}

const SECONDS: Readonly<Record<string, number>> = { minutes: 60, hours: 3600, days: 86_400 };

async function loadClock(request: PageRequest): Promise<ClockSubject> {
  const app = appOf(request);
  if (app.mode === "live") {
    const message = "Live mode runs on real time. Switch to test mode to move its clock.";
    throw new PageError({ code: "forbidden", message }, "No test clock");
  }
  const { now } = await request.ask.app(app, getTestClock, {}).then(dataOf);
  return { app, now };
}

function membersOf(values: Values) {
  const to = timeIn(values["now"] ?? "");
  if (to !== undefined) return { now: to };
  const amount = numberIn(values["advanceSeconds"] ?? "");
  const unit = SECONDS[values["unit"] ?? ""] ?? 1;
  return { advanceSeconds: typeof amount === "number" ? amount * unit : amount };
}

const clock: Action<ClockSubject, typeof moveTestClock> = {
  path: "/console/apps/:appId/:mode/clock",
  title: "Move test clock",
  load: loadClock,
  location: ({ app }) => ({ crumbs: crumbsOf(app), back: appPath(app) }),
  // The clock runs on, so the time is shown here and not in the preview, whose fingerprint it would change.
  intro: ({ now }) => `The test clock shows ${timeLabel(now)} and runs with real time.`,
  fields: () => [
    { name: "advanceSeconds", label: "Forward by", kind: "number", value: "1" },
    {
      name: "unit",
      label: "Unit",
      kind: "select",
      value: "days",
      options: Object.keys(SECONDS).map((value) => ({ value, text: value })),
    },
    { name: "now", label: "Or to this time", kind: "time", hint: "Overrides the fields above." },
  ],
  call: moveTestClock,
  input: (_, values) => (membersOf(values)),
  preview: (_, { app }, values) => {
    const to = timeIn(values["now"] ?? "");
    const unit = values["unit"] ?? "";
    const by = `${values["advanceSeconds"]} ${values["advanceSeconds"] === "1" ? unit.slice(0, -1) : unit}`;
    return {
      sentences: [
        `The clock of test mode of ${app.name} moves forward${
          to === undefined ? ` by ${by}` : ""
        }, for all users.`,
        "Holds, subscriptions and credits that expire by then end, and prompts past their retention are deleted. " +
        "Live mode is not affected.",
      ],
      changes: [{
        what: "Test clock",
        before: "runs with real time",
        after: to === undefined ? `${by} later` : timeLabel(to),
      }],
      danger: { consequence: "The clock cannot be moved back.", typed: null },
      verb: "Move test clock",
    };
  },
  done: (_, __, { now }) => `The test clock shows ${timeLabel(now)}.`,
};

/** The action on the test clock. */
export const CLOCK_ACTIONS = [actionRoutes(clock)];
