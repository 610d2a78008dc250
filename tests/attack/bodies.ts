// Attacks by bodies: too many values, too many bytes, at the bounds, and bodies that never end.

import { type Attack, bytesOf, hang, headOf, post, together } from "./tools.ts";

const FORM = bytesOf("a&".repeat(520_000));
const MEBIBYTE = 1024 * 1024;
const KIBIBYTE = 1024;
const CHAT = "/openai/v1/chat/completions";

/** 33 MB with eleven million values. */
const conversation = () =>
  bytesOf(`{"model":"m","user":"u","messages":["\\u0061",${"[],".repeat(11_000_000)}[]]}`);

/** 500 events with as many bytes and values as a batch may have. */
function fullBatch(): Uint8Array<ArrayBuffer> {
  const metadata = Object.fromEntries(Array.from({ length: 90 }, (_, no) => [`name_${no}`, "x".repeat(160)]));
  const events = Array.from({ length: 500 }, (_, no) => ({
    userId: `many_${no % 50}`,
    event: "image.generated",
    metadata,
  }));
  return bytesOf(JSON.stringify({ events }));
}

export const BODY_ATTACKS: readonly Attack[] = [
  {
    name: "forms at sign-in",
    run: async (scene, signal) => {
      const type = "application/x-www-form-urlencoded";
      await together(4, signal, () => post(scene, "/console/sign-in", FORM, null, type));
      return null;
    },
  },
  {
    name: "structure at the gateway that is off",
    run: async (scene, signal) => {
      const body = conversation();
      await together(3, signal, () => post(scene, CHAT, body, scene.attacker.secretTest));
      return null;
    },
  },
  {
    name: "structure and full bodies at the gateway",
    gateway: true,
    run: async (scene, signal) => {
      const { secretLive } = scene.attacker;
      const values = conversation();
      // Within all bounds, for a model that the app does not have: it is read as a whole, and no model is asked.
      const full = bytesOf(
        `{"model":"m","user":"u","messages":["${"x".repeat(31 * MEBIBYTE)}"${",[]".repeat(95_000)}]}`,
      );
      await together(4, signal, (index) => post(scene, CHAT, index % 2 === 0 ? values : full, secretLive));
      return null;
    },
  },
  {
    name: "structure in batches",
    run: async (scene, signal) => {
      const body = bytesOf(`{"events":[${"[],".repeat(1_300_000)}[]]}`);
      await together(4, signal, () => post(scene, "/api/v1/track/batch", body, scene.attacker.secretTest));
      return null;
    },
  },
  {
    name: "batches at their bounds",
    run: async (scene, signal) => {
      const body = fullBatch();
      const seen = new Set<number>();
      const send = async () =>
        seen.add(await post(scene, "/api/v1/track/batch", body, scene.attacker.secretLive));
      await together(4, signal, send);
      if (!seen.has(200)) await send();
      return seen.has(200) ? null : `no batch was taken: ${[...seen].join(", ")}`;
    },
  },
  {
    name: "bodies of a public key",
    run: async (scene, signal) => {
      const body = bytesOf(`{"distinctId":"u","event":"e","properties":{"a":[${"1,".repeat(500_000)}1]}}`);
      await together(6, signal, () => post(scene, "/api/v1/capture", body, scene.attacker.publicLive));
      return null;
    },
  },
  {
    name: "bodies without a key that never end",
    prepare: async ({ admin, attacker }) => {
      const secret = { mode: "live", webhookSecret: "whsec_attack_0123456789abcdef" };
      await admin("PUT", `/apps/${attacker.appId}/stripe`, secret);
    },
    run: async (scene, signal) => {
      const rows = [
        { path: "/api/v1/stripe/nobody/live", size: MEBIBYTE },
        { path: `/api/v1/stripe/${scene.attacker.appId}/live`, size: 256 * KIBIBYTE },
        { path: "/console/sign-in", size: 4 * KIBIBYTE },
      ] as const;
      const type = "application/x-www-form-urlencoded";
      await together(135, signal, (index) => {
        const { path, size } = rows[index % rows.length] as typeof rows[number];
        const head = headOf("POST", path, { "content-type": type, "content-length": size });
        return hang(scene, head, new Uint8Array(size - 10), signal);
      });
      return null;
    },
  },
  {
    name: "bodies of a tenant that never end",
    gateway: true,
    run: async (scene, signal) => {
      const headers = {
        "authorization": `Bearer ${scene.attacker.secretLive}`,
        "content-type": "application/json",
      };
      const rows = [{ path: "/api/v1/track/batch", size: 4 * MEBIBYTE }, { path: CHAT, size: 32 * MEBIBYTE }];
      await together(60, signal, (index) => {
        const { path, size } = rows[index % 10 === 0 ? 1 : 0] as typeof rows[number];
        const head = headOf("POST", path, { ...headers, "content-length": size });
        return hang(scene, head, new Uint8Array(size - 10), signal);
      });
      return null;
    },
  },
];
