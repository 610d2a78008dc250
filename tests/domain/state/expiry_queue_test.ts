// The queue of open holds against a plain list.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { ExpiryQueue } from "../../../src/domain/state/expiry_queue.ts";

type Step =
  | { readonly add: number }
  | { readonly settle: number }
  /** Moves the expiry of a hold by that much. */
  | { readonly prolong: number }
  | { readonly ask: number };

Deno.test("the queue answers what a sorted list of the open holds answers", () => {
  const at = fc.integer({ min: 0, max: 50 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: at.map((add) => ({ add })) },
    { weight: 2, arbitrary: fc.nat(200).map((settle) => ({ settle })) },
    { weight: 2, arbitrary: fc.nat(200).map((prolong) => ({ prolong })) },
    { weight: 1, arbitrary: at.map((ask) => ({ ask })) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => run(steps)),
    { numRuns: 500 },
  );
});

Deno.test("settled holds leave once they outnumber the open ones, and what is left is still in order", () => {
  const steps: Step[] = [];
  for (let index = 0; index < 3_000; index++) steps.push({ add: (index * 7919) % 1_000 });
  for (let index = 0; index < 2_900; index++) steps.push({ settle: index * 31 });
  steps.push({ ask: 500 }, { ask: 1_000 });
  run(steps);
});

function run(steps: readonly Step[]): void {
  const queue = new ExpiryQueue();
  const open = new Map<string, number>();
  const isOpen = (id: string, at: number) => open.get(id) === at;
  let made = 0;
  for (const step of steps) {
    if ("add" in step) {
      const id = `h${String(made++).padStart(5, "0")}`;
      open.set(id, step.add);
      queue.add(step.add, id);
    } else if ("settle" in step) {
      const ids = [...open.keys()];
      if (ids.length > 0) open.delete(ids[step.settle % ids.length] as string);
      queue.trim(isOpen, open.size);
    } else if ("prolong" in step) {
      const ids = [...open.keys()];
      const id = ids[step.prolong % ids.length];
      if (id !== undefined) {
        const later = (open.get(id) as number) + 1 + step.prolong % 9;
        open.set(id, later);
        queue.add(later, id);
      }
      queue.trim(isOpen, open.size);
    } else {
      const list = [...open].map(([id, at]) => ({ at, id })).filter(({ at }) => at <= step.ask);
      list.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
      assert.deepEqual(queue.due(step.ask, isOpen), list);
      const even = (id: string, at: number) => isOpen(id, at) && Number(id.at(-1)) % 2 === 0;
      const evens = [...open].filter(([id, at]) => even(id, at)).map(([, at]) => at);
      assert.equal(queue.earliest(even), evens.length === 0 ? null : Math.min(...evens));
    }
    assert.equal(queue.next, open.size === 0 ? null : Math.min(...open.values()));
  }
}
