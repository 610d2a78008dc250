// The bar of a limit: what is used, what open reservations hold, the headroom that reservations may not use, the
// quota, and what was sold past it. Position, shade and words tell them apart. A limit with a period of its own says when it counts.

import { AmountText, amountText, comingText, durationText, exactText, Time, TimeOr } from "./format.tsx";
import type { ShownUser } from "./subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import type { explain } from "../../contract/metering.ts";

/** A limit as the call explain returns it. */
export type LimitGroup = AnswerOf<typeof explain>["groups"][number];

/** The running window of a limit with a period of its own, or what a guard counts, and its max of overage; empty for others. */
export type OwnWindow = Partial<Pick<ShownUser["counters"][number], "period" | "window" | "overageMax">>;

/** The period of the plan, for limits without one of their own. */
type PlanPeriod = ShownUser["period"];

const NEAR = 0.8;

/** How full a limit is: "near" from 80 % of its quota on, "full" from the quota on; null below, and for a quota of 0. */
export function levelOf({ quota, current }: Pick<LimitGroup, "quota" | "current">): "near" | "full" | null {
  if (quota === 0 || current < NEAR * quota) return null;
  return current >= quota ? "full" : "near";
}

const LEVELS = {
  near: { text: "near limit", kind: "warn" },
  full: { text: "full", kind: "bad" },
} as const;

/** A limit with its bar and its numbers, highlighted for a moment where it has just changed. */
export function LimitBar(
  { group, own, planPeriod, now, capPath = null, isChanged = false }: {
    group: LimitGroup;
    own: OwnWindow;
    planPeriod: PlanPeriod;
    /** The current time of the app's mode, in milliseconds. */
    now: number;
    /** The form of the user's own cap on overage; null for people who may not change it. */
    capPath?: string | null;
    isChanged?: boolean;
  },
) {
  const { label, unit, quota, gate, current, held, isCustom, overage = 0 } = group;
  const used = current - held;
  // Above the quota, the whole bar is what was used.
  const whole = Math.max(quota, current, Number.MIN_VALUE);
  const percent = (value: number) => `${Math.min(Math.max(value / whole * 100, 0), 100)}%`;
  const level = levelOf(group);
  const state = level === null ? "" : `, ${LEVELS[level].text}`;
  const text = `${amountText(current, unit)} of ${amountText(quota, unit)}${state}`;
  return (
    <div class={isChanged ? "group changed" : "group"} data-level={level ?? undefined}>
      <div class="title">
        <span>
          <b>{label}</b> <LevelTag group={group} />
        </span>
        <span class="amount">
          <AmountText value={current} unit={unit} /> of <AmountText value={quota} unit={unit} />
          {own.window === undefined ? null : ` ${guardText(own.window)}`}
          {isCustom ? <span class="tag">custom</span> : null}
        </span>
      </div>
      <svg class="meter" role="img" aria-label={`${label}: ${text}`} preserveAspectRatio="none">
        <rect class="left" width={percent(quota)} height="100%" />
        {gate < quota
          ? <rect class="buffer" x={percent(gate)} width={percent(quota - gate)} height="100%" />
          : null}
        <rect class="used" width={percent(used)} height="100%" />
        <rect class="held" x={percent(used)} width={percent(held)} height="100%" />
        {current > quota
          ? <rect class="over" x={percent(quota)} width={percent(current - quota)} height="100%" />
          : null}
      </svg>
      <div class="legend">
        <span>
          <i class="used"></i>used <AmountText value={used} unit={unit} />
        </span>
        {held > 0
          ? (
            <span>
              <i class="held"></i>held <AmountText value={held} unit={unit} />
            </span>
          )
          : null}
        {gate < quota
          ? (
            <span>
              <i class="buffer"></i>headroom from <AmountText value={gate} unit={unit} />
            </span>
          )
          : null}
        <span>
          <i class="left"></i>left <AmountText value={Math.max(quota - (current - overage), 0)} unit={unit} />
        </span>
        {own.overageMax === undefined ? null : (
          <span>
            <i class="over"></i>sold past it <AmountText value={overage} unit={unit} />
            {own.overageMax === null ? null : (
              <>
                {" "}
                of <AmountText value={own.overageMax} unit={unit} />
              </>
            )}
            {capPath === null ? null : (
              <>
                {" "}
                <a id={`cap-${group.groupId}`} href={capPath}>Cap</a>
              </>
            )}
          </span>
        )}
        {own.window === undefined ? <Reset own={own.period} plan={planPeriod} now={now} /> : null}
      </div>
    </div>
  );
}

/** A word for how full a limit is; nothing below 80 %. */
export function LevelTag({ group }: { group: LimitGroup }) {
  const level = levelOf(group);
  return level === null ? null : <span class={`tag ${LEVELS[level].kind}`}>{LEVELS[level].text}</span>;
}

/** When a limit starts again at 0; the whole window shows on hover. */
function Reset({ own, plan, now }: { own: OwnWindow["period"]; plan: PlanPeriod; now: number }) {
  if (own === null) return <span>starts with the next call</span>;
  const period = own ?? plan;
  if (period === null) return null;
  const { start, end } = period;
  if (end === null) return <span title={`since ${exactText(start)}`}>never resets</span>;
  return (
    <time datetime={end} title={`${exactText(start)} to ${exactText(end)}`}>
      resets {comingText(end, now)}
    </time>
  );
}

/** What a guard counts: the last seconds, or what is in flight. */
function guardText({ type, seconds = 0 }: NonNullable<OwnWindow["window"]>): string {
  return type === "concurrent" ? "in flight" : `in the last ${durationText(seconds)}`;
}

/** Which usage a limit counts: that of its window, or what its guard counts. */
export function Counting({ own }: { own: OwnWindow }) {
  return own.window === undefined ? <Running period={own.period} /> : <span>{guardText(own.window)}</span>;
}

/** The running window of a limit with a period of its own. */
function Running({ period }: Pick<OwnWindow, "period">) {
  if (period === undefined) return null;
  if (period === null) return <span>starts with the next call</span>;
  return (
    <span>
      <Time at={period.start} /> to <TimeOr at={period.end} none="no end" />
    </span>
  );
}
