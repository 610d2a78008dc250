// Releasing a hold that is open.

import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type Act, actAt } from "../parts/action.tsx";
import { amountText } from "../parts/format.tsx";
import { textIn } from "../parts/form.tsx";
import { aboutUser, placeOfUser, refusedPage, type UserSubject } from "../parts/subject.tsx";

interface Hold {
  readonly reservationId: string;
  readonly event: string;
  readonly amounts: readonly {
    readonly groupId?: string;
    readonly balanceId?: string;
    readonly unit: Unit;
    readonly amount: number;
  }[];
}

interface HoldSubject extends UserSubject {
  readonly hold: Hold;
}

const release: Act<HoldSubject> = {
  path: "/console/apps/:appId/:mode/users/:userId/holds/:reservationId/release",
  title: "Release a hold",
  about: async (request) => {
    const subject = await aboutUser(request);
    if (!("user" in subject)) return subject;
    const { app: { appId, mode }, user: { userId } } = subject;
    const held = await request.ask.admin<{ holds: Hold[] }>("listHolds", { appId, mode, userId });
    if (!held.ok) return refusedPage(held.error);
    const hold = held.data.holds.find(({ reservationId }) =>
      reservationId === request.params["reservationId"]
    );
    if (hold !== undefined) return { ...subject, hold };
    const message = "This reservation is not open any more: it was committed, released, or it expired.";
    return refusedPage({ code: "reservation_not_pending", message }, "Nothing to release");
  },
  place: placeOfUser,
  userId: ({ user }) => user.userId,
  lead: ({ hold }) => `Reservation ${hold.reservationId} of the event ${hold.event}.`,
  fields: () => [{ name: "reason", label: "Reason", kind: "long", hint: "For the event's record." }],
  call: ({ hold }, values) => ({
    id: "release",
    members: { reservationId: hold.reservationId, reason: textIn(values["reason"] ?? "") },
  }),
  preview: (_, { user, hold }) => ({
    sentences: [`What reservation ${hold.reservationId} holds goes back to ${user.userId}.`],
    changes: hold.amounts.map(({ groupId, balanceId, unit, amount }) => ({
      what: groupId === undefined ? `Held of the balance ${balanceId}` : `Held of ${groupId}`,
      before: amountText(amount, unit),
      after: amountText(0, unit),
    })),
    danger: {
      consequence: "If the work still runs, its commit will be refused and its use never counted.",
      typed: null,
    },
    verb: "Release the hold",
  }),
  done: ({ hold }) => `The hold of ${hold.event} is released.`,
};

/** The acts on holds. */
export const HOLD_ACTS = [actAt(release)];
