// Values that the states of many users share: texts of open holds, keys of counters, and windows. The runtime makes one object
// of them and passes it to the state of every user, so the rules have no memory of their own. What it remembers of keys
// and windows only saves work: equal questions have equal answers.

import {
  contains,
  type Millis,
  type Period,
  type RollingPeriod,
  slotAt,
  type Window,
  windowAt,
} from "../values/period.ts";
import { counterKey } from "./counter.ts";
import { HoldTexts } from "./hold_text.ts";
import { anchorOf, type Subscription } from "./subscription.ts";
import type { TextRoom } from "./text_room.ts";

interface KnownKey {
  readonly windowStart: Millis;
  readonly key: string;
}

interface KnownWindow {
  readonly period: Period;
  readonly window: Window;
}

/** How many plans' keys are remembered. */
const PLANS_MAX = 10_000;

/** What the states of all users of a runtime share. */
export class SharedValues {
  readonly holds: HoldTexts;
  /** The newest key of each group of a plan. Most users of a plan are in one window. */
  readonly #keys = new Map<string, Map<string, KnownKey>>();
  /**
   * The newest window of a row or, for calendar periods, of all rows that share one. Rows and periods never change in
   * place.
   */
  readonly #windows = new WeakMap<Subscription | Period, KnownWindow>();

  /** The newest slot of each rate, and when the next one begins. */
  readonly #slots = new WeakMap<RollingPeriod, { readonly window: Window; readonly next: Millis }>();

  /** @param room for the texts that callers give to holds */
  constructor(room?: TextRoom) {
    this.holds = new HoldTexts(room);
  }

  /** Returns the key of a counter in maps. */
  counterKey(planId: string, groupId: string, windowStart: Millis): string {
    let ofPlan = this.#keys.get(planId);
    if (ofPlan === undefined) {
      if (this.#keys.size >= PLANS_MAX) this.#keys.clear();
      this.#keys.set(planId, ofPlan = new Map());
    }
    const known = ofPlan.get(groupId);
    if (known?.windowStart === windowStart) return known.key;
    const key = counterKey(planId, groupId, windowStart);
    ofPlan.set(groupId, { windowStart, key });
    return key;
  }

  /** Returns the running window of a row, under the period of its plan or of a group. */
  windowOf(row: Subscription, period: Period, at: Millis): Window {
    const owner = period.anchor === "calendar" && period.type !== "lifetime" ? period : row;
    const known = this.#windows.get(owner);
    if (known !== undefined && known.period === period && contains(known.window, at)) return known.window;
    const window = windowAt(period, at, anchorOf(row), row.startedAt);
    this.#windows.set(owner, { period, window });
    return window;
  }

  /** Returns the slot of a rate that contains a moment. */
  slotOf(rate: RollingPeriod, at: Millis): Window {
    const known = this.#slots.get(rate);
    if (known !== undefined && at >= known.window.start && at < known.next) return known.window;
    const window = slotAt(at, rate.seconds);
    this.#slots.set(rate, { window, next: (window.end as Millis) - rate.seconds * 1000 });
    return window;
  }
}
