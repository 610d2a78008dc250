// Work that rests on what is there, one piece after another, so that none undoes what another one did. For rare
// work beside the actors (administration, a test clock); a user's turns have their mailbox.

const lastPieces = new WeakMap<object, Promise<unknown>>();

/** Runs a piece of work after every earlier one of the same owner. */
export function inTurn<T>(owner: object, work: () => Promise<T>): Promise<T> {
  const piece = (lastPieces.get(owner) ?? Promise.resolve()).then(work);
  lastPieces.set(owner, piece.catch(() => {}));
  return piece;
}
