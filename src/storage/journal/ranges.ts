// What belongs to one term on the server: its range of the journal and the name of its sessions. Ranges do not overlap, so
// a replay of one term cannot touch the batches of another.

/** How many batches one term can append. All terms share the numbers below 2^53. */
const SEQ_PER_TERM = 2 ** 33;

/** The seq before the first append of a term. */
export function firstSeq(term: number): number {
  return term * SEQ_PER_TERM;
}

/** The last seq that a term can have. */
export function lastSeq(term: number): number {
  return firstSeq(term + 1);
}

/** The name of a term's sessions on the server, by which other nodes can end them after its death. */
export function sessionNameOf(term: number): string {
  return `holdfast ${term}`;
}
