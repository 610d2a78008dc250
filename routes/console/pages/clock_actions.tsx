// Moving the clock of test mode.

import { type Act, actAt } from "../parts/action.tsx";
import { timeLabel } from "../parts/format.tsx";
import { numberIn, timeIn, type Values } from "../parts/form.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageRequest, Shown } from "../parts/page_context.ts";
import { appOf, refusedPage, type UserSubject } from "../parts/subject.tsx";

interface ClockSubject {
  readonly app: UserSubject["app"];
  readonly now: string;
}

const SECONDS: Readonly<Record<string, number>> = { minutes: 60, hours: 3600, days: 86_400 };

async function aboutClock(request: PageRequest): Promise<ClockSubject | Shown> {
  const app = appOf(request);
  if (app.mode === "live") {
    const message = "Live mode runs on real time. Switch to test mode to move its clock.";
    return refusedPage({ code: "forbidden", message }, "No test clock");
  }
  const clock = await request.ask.app<{ now: string }>(app, "getTestClock", {});
  return clock.ok ? { app, now: clock.data.now } : refusedPage(clock.error);
}

function membersOf(values: Values) {
  const to = timeIn(values["now"] ?? "");
  if (to !== undefined) return { now: to };
  const amount = numberIn(values["advanceSeconds"] ?? "");
  const unit = SECONDS[values["unit"] ?? ""] ?? 1;
  return { advanceSeconds: typeof amount === "number" ? amount * unit : amount };
}

const clock: Act<ClockSubject> = {
  path: "/console/apps/:appId/:mode/clock",
  title: "Move the test clock",
  about: aboutClock,
  place: (_, { app }) => ({ crumbs: [{ title: app.name, href: appPath(app) }], back: appPath(app) }),
  // Time passes while somebody reads: what is shown of it must not be part of a preview's ground.
  lead: ({ now }) => `It stands at ${timeLabel(now)} and runs on with real time.`,
  fields: () => [
    { name: "advanceSeconds", label: "Forward by", kind: "number", value: "1" },
    {
      name: "unit",
      label: "Unit",
      kind: "select",
      value: "days",
      options: Object.keys(SECONDS).map((value) => ({ value, text: value })),
    },
    { name: "now", label: "Or to", kind: "time", hint: "Counts before the fields above." },
  ],
  call: (_, values) => ({ id: "moveTestClock", members: membersOf(values) }),
  preview: (_, { app }, values) => {
    const to = timeIn(values["now"] ?? "");
    const unit = values["unit"] ?? "";
    const by = `${values["advanceSeconds"]} ${values["advanceSeconds"] === "1" ? unit.slice(0, -1) : unit}`;
    return {
      sentences: [
        `The whole test mode of ${app.name} moves forward${to === undefined ? ` by ${by}` : ""}.`,
        "Holds, subscriptions and credits that are due by then end, and prompts past their time go. " +
        "Live mode is not touched.",
      ],
      changes: [{
        what: "Test clock",
        before: "runs with real time",
        after: to === undefined ? `${by} later` : timeLabel(to),
      }],
      danger: { consequence: "The clock never goes back.", typed: null },
      verb: "Move the clock",
    };
  },
  done: (_, __, answer) => `The test clock stands at ${timeLabel((answer as { now: string }).now)}.`,
};

/** The act on the test clock. */
export const CLOCK_ACTS = [actAt(clock)];
