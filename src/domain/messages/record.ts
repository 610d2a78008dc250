// Recording messages: the messages of a draft become rows of the outbox. They are changes like any other, so a message is
// durable exactly when the change that it reports is.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Change, User } from "../state/user.ts";
import { addressed } from "../state/message.ts";

/**
 * Returns the outbox rows of a draft's messages since the last call; none without a webhook.
 *
 * @param causedBy the user whose call caused them, where that is another one
 */
export function messagesOf(
  draft: Draft,
  { outbox, now, ids }: Context,
  causedBy: Pick<User, "key" | "id"> | null = null,
): readonly Change[] {
  const messages = draft.takeMessages();
  if (outbox === null || messages.length === 0) return NONE;
  const { key, realm } = draft.user;
  return addressed(messages, outbox, { userKey: key, realm, now, causedBy }, ids)
    .map((row) => ({ verb: "append", table: "webhook_messages", row }));
}

const NONE: readonly Change[] = [];
