// Recording messages: what a draft told becomes rows of the outbox, changes like any other, so that a message is durable
// exactly when what it tells of is.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Change } from "../state/user.ts";
import { addressed } from "../state/message.ts";

/** The rows for what a draft told since it was last asked; none where nobody listens. */
export function messagesOf(draft: Draft, { outbox, now, ids }: Context): readonly Change[] {
  const messages = draft.takeMessages();
  if (outbox === null || messages.length === 0) return NONE;
  const { key, realm } = draft.user;
  return addressed(messages, outbox, { userKey: key, realm, now }, ids)
    .map((row) => ({ verb: "append", table: "webhook_messages", row }));
}

const NONE: readonly Change[] = [];
