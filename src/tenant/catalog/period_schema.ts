// The part of the catalog format for periods: those of plans and packs, and those of limit groups.

import { z } from "zod";
import { PERIOD_TYPES } from "../../domain/values/period.ts";

const anchor = z.enum(["subscription_start", "calendar"]).meta({
  description:
    "Where windows start: at the subscription's start (or cycle start), or with the UTC calendar: " +
    ":00, 00:00, Monday, the 1st, 1 January.",
  examples: ["calendar"],
});

export const period = z.strictObject({
  type: z.enum(PERIOD_TYPES).meta({
    description: "How long a window is. `lifetime` is one window without an end.",
    examples: ["monthly"],
  }),
  anchor,
}).meta({
  id: "CatalogPeriod",
  title: "Period",
  description: "How often the counters of a plan start again at 0.",
});

export const groupPeriod = z.strictObject({
  type: z.enum([...PERIOD_TYPES, "session", "rolling", "concurrent"]).meta({
    description:
      "The calendar types count like a plan's period. `session`: a window that begins with the first allowed " +
      "call and lasts `seconds`. `rolling`: a rate, what was counted within the last `seconds`. `concurrent`: " +
      "what open holds hold at a time.",
    examples: ["rolling"],
  }),
  anchor: anchor.optional().meta({ description: "Needed for the calendar types, and for these alone." }),
  seconds: z.int().positive().optional().meta({
    description: "Needed for `session` (60 to 2,678,400) and `rolling` (1 to 86,400), and for these alone.",
    examples: [60],
  }),
}).meta({
  id: "CatalogGroupPeriod",
  title: "Group period",
  description:
    "When a group counts. `rolling` and `concurrent` make the group a guard: it only refuses, so an event that " +
    "no other group and no credits cover is refused as `unmatched_event`. No credit pays for a guard, and it has " +
    "no headroom, alerts, overage or perMember. Type and seconds of sessions and guards never change under an " +
    "id. A change of plan empties no guard. Of a session, `carry` takes the running window along, `reset` ends " +
    "it, and `block` fills the one of the entered plan, if it runs.",
});
