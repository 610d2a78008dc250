// The webhook commands of the admin command line against a real service.

import assert from "node:assert/strict";
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { operatorOf, runTask, serve, type ServedService, testShell, withService } from "./support.ts";

const ADDRESS = "https://example.com/holdfast";

/** Runs a command to its end; answers its output. */
async function admin(service: ServedService, args: readonly string[], expected: number = EXIT.ok) {
  const { shell, out, err } = testShell(operatorOf(service));
  assert.equal(await runAdmin(args, shell), expected, `${args.join(" ")}: ${err()}`);
  return { out: out(), err: err() };
}

Deno.test("an operator makes, changes and removes a webhook, and sees its secret once", async () => {
  await withService(async (service) => {
    await service.newApp();
    const args = ["webhooks", "create", ADDRESS, "--mode", "live", "--events", "credits.*, user.merged"];
    const made = await runTask("admin", [...args, "--description", "Mails"], operatorOf(service));
    assert.equal(made.code, EXIT.ok, made.err);
    assert.match(made.out, /\nShown once and never again. Keep it now:\nSecret: whsec_[A-Za-z0-9+/]{43}=\n$/);
    const [id = ""] = made.out.match(/whk_\w+/) ?? [];
    const { out: listed } = await admin(service, ["webhooks", "list"]);
    assert.match(listed, /^WEBHOOK +MODE +URL +EVENTS +STATE +PENDING/);
    assert.ok(listed.includes("credits.*, user.merged") && !listed.includes("whsec_"));
    const update = (...changes: string[]) => admin(service, ["webhooks", "update", id, ...changes, "--json"]);
    const changed = JSON.parse((await update("--disable", "--no-description", "--events", "*")).out);
    assert.deepEqual([changed.disabled, changed.description, changed.events], [true, null, ["*"]]);
    assert.equal(JSON.parse((await update("--enable")).out).disabled, false);
    const rotated = await admin(service, ["webhooks", "rotate", id]);
    assert.match(rotated.out, /^Shown once and never again. Keep it now:\nSecret: whsec_/);
    assert.ok(!made.out.includes(rotated.out.slice(-44)));

    const hesitant = testShell(operatorOf(service), "no");
    assert.equal(await runAdmin(["webhooks", "delete", id], hesitant.shell), EXIT.refused);
    assert.match((await admin(service, ["webhooks", "delete", id], EXIT.usage)).err, /use --yes/);
    assert.equal((await admin(service, ["webhooks", "delete", id, "--yes"])).out, `Removed ${id}`);
    assert.deepEqual(JSON.parse((await admin(service, ["webhooks", "list", "--json"])).out), []);
  });
});

Deno.test("messages are a table with the status of each", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    const path = `/apps/${app.appId}/webhooks`;
    const { webhookId } = (await service.admin("POST", path, { url: ADDRESS, mode: "live", events: ["*"] }))
      .body.data;
    await service.admin("PATCH", `${path}/${webhookId}`, { disabled: true });
    await service.store.database.query(
      `insert into webhook_messages (id, webhook_id, realm, type, body, created_at_ms, status, attempts,
         next_attempt_at_ms, last_status, last_error, ended_at_ms)
       values ('whm_1', $1, 1, 'ping', $2, 0, 'failed', 8, 0, 503, $3, 0)`,
      [webhookId, JSON.stringify({ data: { appId: app.appId, mode: "live" } }), "It answered\u001b[31m 503"],
    );
    const { out } = await admin(service, [
      "webhooks",
      "messages",
      webhookId,
      "--status",
      "failed",
      "--limit",
      "5",
    ]);
    const [titles, row, ...more] = out.split("\n");
    assert.match(
      titles as string,
      /^MESSAGE +TYPE +STATUS +ATTEMPTS +NEXT ATTEMPT +LAST STATUS +LAST ERROR +CREATED/,
    );
    assert.match(row as string, /^whm_1 +ping +failed +8 +- +503 +It answered\ufffd\[31m 503 +1970-01-01T/);
    assert.deepEqual(more, []);
    const { out: none } = await admin(service, [
      "webhooks",
      "messages",
      webhookId,
      "--offset",
      "1",
      "--json",
    ]);
    assert.deepEqual(JSON.parse(none), { messages: [] });
  });
});

Deno.test("a ping is sent at once, and redelivering sends it again", async () => {
  const got: (string | null)[] = [];
  const receiver = serve(({ headers }) => {
    got.push(headers.get("webhook-id"));
    return new Response("thanks");
  });
  try {
    await withService(async (service) => {
      await service.newApp();
      const args = [
        "webhooks",
        "create",
        receiver.url,
        "--mode",
        "test",
        "--events",
        "user.merged",
        "--json",
      ];
      const { webhookId } = JSON.parse((await admin(service, args)).out);
      const { out } = await admin(service, ["webhooks", "ping", webhookId]);
      const [messageId = ""] = out.match(/^Sent (whm_\w+)$/)?.slice(1) ?? [];
      const isDelivered = async () => {
        const { out } = await admin(service, ["webhooks", "messages", webhookId, "--status", "delivered"]);
        return out.includes(messageId);
      };
      while (!await isDelivered()) await new Promise((resolve) => setTimeout(resolve, 5));
      const again = await admin(service, ["webhooks", "redeliver", webhookId, messageId]);
      assert.match(again.out, new RegExp(`\n${messageId} +ping +delivered +2 +- +200 +- +2026-`));
      assert.deepEqual(got, [messageId, messageId]);
    }, { allowsPrivateWebhooks: true });
  } finally {
    await receiver.close();
  }
});

Deno.test("wrong usage of the webhook commands is refused before anything is sent", async () => {
  await withService(async (service) => {
    await service.newApp();
    const rows: readonly (readonly [number, readonly string[], RegExp])[] = [
      [EXIT.usage, ["create", ADDRESS, "--mode", "live"], /'--events/],
      [EXIT.usage, ["create", ADDRESS, "--mode", "both", "--events", "*"], /Allowed choices are live, test/],
      [EXIT.usage, ["update", "whk_1"], /^Nothing to change/],
      [EXIT.usage, ["update", "whk_1", "--disable", "--enable"], /cannot be used with/],
      [EXIT.usage, ["messages", "whk_1", "--limit", "0"], /Must be a whole number from 1 to 100/],
      [EXIT.usage, ["messages", "whk_1", "--status", "sent"], /Allowed choices are pending/],
      [
        EXIT.refused,
        ["create", "http://example.com", "--mode", "live", "--events", "*"],
        /url: must be an https/,
      ],
      [EXIT.refused, ["rotate", "whk_1"], /^Refused \(not_found\)/],
    ];
    for (const [code, args, message] of rows) {
      assert.match((await admin(service, ["webhooks", ...args], code)).err, message);
    }
  });
});
