// Runs work that reads and then writes the same thing one after another, so that no write is lost. For rare work such as
// administration and test clocks; a user's calls wait in the actor's mailbox.

const lastPieces = new WeakMap<object, Promise<unknown>>();

/** Runs a piece of work after every earlier one of the same owner. */
export function inTurn<T>(owner: object, work: () => Promise<T>): Promise<T> {
  const piece = (lastPieces.get(owner) ?? Promise.resolve()).then(work);
  lastPieces.set(owner, piece.catch(() => {}));
  return piece;
}
