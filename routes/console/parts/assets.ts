// The files that pages load: styles, our script, and a library. They are part of the program and served compressed,
// under a path with a hash of the content, so that browsers cache them for good.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import script from "../assets/console.js" with { type: "text" };
import styles from "../assets/console.css" with { type: "text" };

/** A compressed file. */
interface Asset {
  readonly path: string;
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const STYLE_TYPE = "text/css; charset=UTF-8";
const SCRIPT_TYPE = "text/javascript; charset=UTF-8";

/** The paths of the files, and their responses. */
export interface Assets {
  readonly styles: string;
  readonly script: string;
  readonly htmx: string;
  /** The response for a path; null for an unknown path. */
  answer(path: string): Response | null;
}

/** Reads the files, on the first visit: a process without visitors needs no memory for them. */
export async function readAssets(): Promise<Assets> {
  const { default: htmx } = await import("../assets/htmx.js.gz", { with: { type: "bytes" } });
  const assets = {
    styles: compressed("console.css", STYLE_TYPE, styles),
    script: compressed("console.js", SCRIPT_TYPE, script),
    htmx: named("htmx.js", SCRIPT_TYPE, new Uint8Array(htmx)),
  };
  const byPath = new Map(Object.values(assets).map((asset) => [asset.path, asset]));
  return {
    styles: assets.styles.path,
    script: assets.script.path,
    htmx: assets.htmx.path,
    answer(path) {
      const asset = byPath.get(path);
      if (asset === undefined) return null;
      return new Response(asset.bytes, {
        headers: {
          "content-type": asset.type,
          "content-encoding": "gzip",
          "cache-control": "public, max-age=31536000, immutable",
          "x-content-type-options": "nosniff",
        },
      });
    },
  };
}

function compressed(name: string, type: string, text: string): Asset {
  return named(name, type, new Uint8Array(gzipSync(Buffer.from(text), { level: 9 })));
}

function named(name: string, type: string, bytes: Uint8Array<ArrayBuffer>): Asset {
  const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 16);
  return { path: `/console/assets/${hash}/${name}`, type, bytes };
}
