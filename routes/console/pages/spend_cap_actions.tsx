// The action that sets a user's own cap on what a limit sells past its quota.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { amountText } from "../parts/format.tsx";
import { numberIn, type Values } from "../parts/form.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { loadUser, PageError, type ShownUser, userLocation, type UserSubject } from "../parts/subject.tsx";
import { setSpendCap } from "../../contract/overage.ts";

interface CapSubject extends UserSubject {
  readonly counter: ShownUser["counters"][number];
}

async function loadCounter(request: PageRequest): Promise<CapSubject> {
  const subject = await loadUser(request);
  const counter = subject.user.counters.find(({ groupId }) => groupId === request.params["groupId"]);
  if (counter?.overageMax !== undefined) return { ...subject, counter };
  const message = "The plan in force has no such limit, or the limit sells nothing past its quota.";
  throw new PageError({ code: "not_found", message }, "No overage");
}

const NONE = "none";

function capOf({ user, counter }: CapSubject): number | null {
  return user.spendCaps?.[counter.groupId]?.max ?? null;
}

function capIn(values: Values): number | string | null {
  return numberIn(values["max"] ?? "") ?? null;
}

const cap: Action<CapSubject, typeof setSpendCap> = {
  path: "/console/apps/:appId/:mode/users/:userId/limits/:groupId/spend-cap",
  title: "Spend cap",
  load: loadCounter,
  location: userLocation,
  intro: ({ user, counter }) =>
    `The most that ${user.userId} may be sold past the quota of ${counter.label} in a window.`,
  fields: (subject) => {
    const before = capOf(subject);
    return [{
      name: "max",
      label: "Cap",
      kind: "number",
      value: before === null ? "" : String(before),
      hint: `Leave empty for the max of the catalog alone.${
        subject.counter.unit === "cents" ? " Enter cents." : ""
      }`,
    }];
  },
  call: setSpendCap,
  input: ({ user, counter }, values) => ({
    userId: user.userId,
    groupId: counter.groupId,
    max: capIn(values),
  }),
  preview: (_, subject, values) => {
    const { user, counter } = subject;
    const [before, after] = [capOf(subject), capIn(values)];
    if (before === after) return [{ field: null, message: "No changes: this is the cap already." }];
    const shown = (max: number | string | null) =>
      max === null ? NONE : amountText(Number(max), counter.unit);
    return {
      sentences: [
        `Calls of ${user.userId} that would be sold beyond the cap are refused from the next call on.`,
        `Sold in this window: ${amountText(counter.overage ?? 0, counter.unit)}. It stays sold.`,
      ],
      changes: [{ what: `Cap of ${counter.label}`, before: shown(before), after: shown(after) }],
      basis: { before },
      verb: "Set cap",
    };
  },
  done: ({ user, counter }) => `The cap of ${user.userId} on ${counter.label} is updated.`,
};

export const SPEND_CAP_ACTIONS = [actionRoutes(cap)];
