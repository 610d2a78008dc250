// The action that releases an open hold.

import { type Action, actionRoutes } from "../parts/action.tsx";
import { amountText } from "../parts/format.tsx";
import { textIn } from "../parts/form.tsx";
import { dataOf, loadUser, PageError, userLocation, type UserSubject } from "../parts/subject.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listHolds } from "../../contract/admin_users.ts";
import { release } from "../../contract/metering.ts";

type Hold = AnswerOf<typeof listHolds>["holds"][number];

interface HoldSubject extends UserSubject {
  readonly hold: Hold;
}

const releaseHold: Action<HoldSubject, typeof release> = {
  path: "/console/apps/:appId/:mode/users/:userId/holds/:reservationId/release",
  title: "Release hold",
  load: async (request) => {
    const subject = await loadUser(request);
    const { app: { appId, mode }, user: { userId } } = subject;
    const { holds } = await request.ask.admin(listHolds, { appId, mode, userId }).then(dataOf);
    const hold = holds.find(({ reservationId }) => reservationId === request.params["reservationId"]);
    if (hold !== undefined) return { ...subject, hold };
    const message = "This reservation is no longer open: it was committed or released, or it expired.";
    throw new PageError({ code: "reservation_not_pending", message }, "Nothing to release");
  },
  location: userLocation,
  intro: ({ hold }) =>
    `Reservation ${hold.reservationId} for the event type ${hold.event}${
      hold.heldFor === undefined ? "" : `, of ${hold.heldFor}`
    }.`,
  fields: () => [{ name: "reason", label: "Reason", kind: "long", hint: "Stored with the event." }],
  call: release,
  input: ({ hold }, values) => ({
    reservationId: hold.reservationId,
    reason: textIn(values["reason"] ?? ""),
  }),
  preview: (_, { user, hold }) => ({
    sentences: [
      `The amounts held by reservation ${hold.reservationId} are returned to ${hold.heldFor ?? user.userId}${
        hold.heldFor === undefined && user.parentId === undefined ? "" : " and to every user above it"
      }.`,
    ],
    changes: hold.amounts.map((held) => ({
      what: "groupId" in held ? `Held from ${held.groupId}` : `Held from balance ${held.balanceId}`,
      before: amountText(held.amount, held.unit),
      after: amountText(0, held.unit),
    })),
    danger: {
      consequence:
        "If the work is still running, its commit will be refused and its usage will not be counted.",
      typed: null,
    },
    verb: "Release hold",
  }),
  done: ({ hold }) => `The hold for ${hold.event} is released.`,
};

/** The actions on holds. */
export const HOLD_ACTIONS = [actionRoutes(releaseHold)];
