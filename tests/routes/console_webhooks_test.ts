// The console's page of a webhook endpoint on a real server: the status of deliveries, a test event, another attempt.

import assert from "node:assert/strict";
import { serve } from "../tasks/support.ts";
import { consoleOf, Visitor } from "./console_support.ts";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile({ allowsPrivateWebhooks: true });

const MARKUP = '<script>alert("x")</script>';

Deno.test("deliveries show their status, and a failed one is sent again", async () => {
  let status = 500;
  const got: (string | null)[] = [];
  const { url, close } = serve((request) => {
    got.push(request.headers.get("webhook-id"));
    return Promise.resolve(new Response(null, { status }));
  });
  try {
    const app = await appWithUser(service);
    const made = { url: `${url}/hooks`, mode: "live", events: ["subscription.*"] };
    const { webhookId } = await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, made));
    const visitor = await Visitor.signedIn(consoleOf(service));
    const place = `/console/apps/${app.appId}/live/webhooks/${webhookId}`;
    assert.match((await visitor.get(place)).text, /no deliveries yet/);
    await dataOf(app.call("POST", "/subscriptions", { userId: MARKUP, planId: "plan_pro" }));
    const until = async (pattern: RegExp) => {
      while (true) {
        const page = await visitor.get(place);
        if (pattern.test(page.text)) return page;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    // A page reads the status of the endpoint before its deliveries, so the status may be older.
    const failed = await until(/failing .* subscription\.created .* pending 1 500/);
    assert.ok(failed.text.includes(JSON.stringify(MARKUP)));
    assert.ok(!failed.html.includes(MARKUP));
    assert.match((await visitor.get(`${place}?status=delivered`)).text, /No delivered deliveries/);
    assert.match((await visitor.get(`${place}?as=csv`)).html, /,"subscription\.created","pending",1,500,/);

    const [messageId] = /whm_[a-z0-9]+/.exec(failed.text) ?? [];
    const question = await visitor.get(`${place}/messages/${messageId}/redeliver`);
    assert.match((await visitor.press(question, "Send again")).text, /Delivery failed: /);
    status = 200;
    const again = await visitor.get(`${place}/messages/${messageId}/redeliver`);
    const delivered = await visitor.press(again, "Send again");
    assert.match(delivered.text, /The message was delivered\..*delivered 3 200/);
    assert.deepEqual(got, [messageId, messageId, messageId]);

    const pinged = await visitor.press(await visitor.get(`${place}/ping`), "Send test event");
    assert.match(pinged.text, /The test event is being sent/);
    await until(/healthy .* ping .* delivered 1 200/);
  } finally {
    await close();
  }
});
