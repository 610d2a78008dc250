// The Stripe commands of the admin command line against a real service.

import assert from "node:assert/strict";
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { eventOf, SECRET, send, sessionOf } from "../routes/stripe_support.ts";
import { operatorOf, testShell, withService } from "./support.ts";

Deno.test("an operator connects Stripe, sees what was paid and not handled, and tries it again", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    const admin = async (args: readonly string[], expected: number = EXIT.ok) => {
      const { shell, out, err } = testShell(operatorOf(service));
      assert.equal(await runAdmin(["stripe", ...args], shell), expected, `${args.join(" ")}: ${err()}`);
      return { out: out(), err: err() };
    };
    assert.match((await admin(["show"])).out, /MODE +STATE.*\nlive +not connected.*\ntest +not connected/);
    const set = await admin(["set", "--mode", "live", "--webhook-secret", SECRET]);
    assert.match(set.out, /live +connected/);
    assert.ok(!set.out.includes(SECRET));
    const event = eventOf(
      "checkout.session.completed",
      sessionOf({ amount_total: 990, currency: "usd", metadata: {} }),
    );
    assert.equal((await send(service, app, event)).status, 200);
    assert.match(
      (await admin(["unhandled", "--mode", "live"])).out,
      new RegExp(`${event.id} +checkout.session.completed +cs_1 +990 +usd .*the session's metadata has no`),
    );
    assert.match((await admin(["retry", event.id])).out, /^Not handled: the session's metadata/);
    assert.match((await admin(["retry", "evt_none"], EXIT.refused)).err, /No unhandled message/);
    assert.match((await admin(["remove", "--mode", "live"], EXIT.usage)).err, /use --yes/);
    assert.match(
      (await admin(["remove", "--mode", "live", "--yes"])).out,
      /^Disconnected Stripe in live mode/,
    );
  });
});
