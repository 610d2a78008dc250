// Keys of users: a key is let in from the answer that showed it until it is revoked, by no call after the answer of the
// revocation, and for its own user alone.

import { type Attempt, type Call, isFinal } from "../history.ts";
import type { Checker } from "../watch.ts";

/** Looks at every call with a key of a user. */
export function userKeysChecker(): Checker {
  return {
    name: "user keys",
    atEnd({ calls }) {
      for (const call of calls) {
        if (call.request.op !== "ownUsage") continue;
        for (const attempt of call.attempts) {
          if (attempt.reply !== null && isFinal(attempt.reply)) check(calls, call, attempt);
        }
      }
    },
  };
}

function check(calls: readonly Call[], { no, bearer, tenant, request }: Call, attempt: Attempt): void {
  const ofTenant = calls.filter((call) => call.tenant === tenant);
  const revocations = ofTenant.filter(({ request: { op, input } }) =>
    op === "revokeUserKey" && input["key"] === bearer
  );
  const { status = 0, model: { data = {} } = {} } = attempt.reply ?? {};
  const told = revocations.find(({ answer, answeredAt }) =>
    answer?.status === 200 && answeredAt !== null && answeredAt < attempt.sentAt
  );
  if (status !== 401 && told !== undefined) {
    throw new Error(`call ${no} was let in with a key of a user that call ${told.no} had revoked`);
  }
  const isRevoked = revocations.some(({ calledAt }) => calledAt < (attempt.repliedAt ?? Infinity));
  if (status === 401 && !isRevoked) {
    throw new Error(`call ${no} was refused with a key of a user that was not revoked`);
  }
  if (status === 401) return;
  const made = ofTenant.find(({ answer }) => answer?.model.data?.["key"] === bearer) as Call;
  const holder = made.request.input["userId"];
  const asked = request.input["userId"];
  const isMerged = ofTenant.some(({ request: { op, input }, calledAt }) =>
    op === "alias" && String(input["from"]).startsWith("holder-") &&
    calledAt < (attempt.repliedAt ?? Infinity)
  );
  if (status === 200 ? asked !== holder && !isMerged : asked === holder || status !== 403) {
    throw new Error(`call ${no} for ${asked} with a key of ${holder} was answered with ${status}`);
  }
  if (status === 200 && !isMerged && data["userId"] !== holder) {
    throw new Error(`call ${no} with a key of ${holder} was shown ${data["userId"]}`);
  }
}
