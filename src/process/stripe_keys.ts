// API keys of Stripe, from environment variables: STRIPE_API_KEY_LIVE__<appId>, STRIPE_API_KEY_TEST__<appId>, and both without
// a suffix for a service in which one app alone has Stripe. They are never stored and never shown.

/** Keys by mode and app. */
export interface StripeKeys {
  /** By "live" or "test", then by app id; "" for a key without a suffix. */
  readonly byMode: Readonly<Record<"live" | "test", ReadonlyMap<string, string>>>;
  /** The origin of Stripe's API; null for Stripe's own. */
  readonly base: string | null;
}

export const NO_STRIPE_KEYS: StripeKeys = { byMode: { live: new Map(), test: new Map() }, base: null };

const NAME = /^STRIPE_API_KEY_(LIVE|TEST)(?:__(.+))?$/;
const FORM = { live: /^(sk|rk)_live_\S+$/, test: /^(sk|rk)_test_\S+$/ } as const;

/**
 * Reads the keys from variables.
 *
 * @param fail called with the name of an invalid variable, and what it must be
 */
export function readStripeKeys(
  variables: Readonly<Record<string, string | undefined>>,
  fail: (name: string, message: string) => never,
): StripeKeys {
  const byMode = { live: new Map<string, string>(), test: new Map<string, string>() };
  for (const [name, value] of Object.entries(variables)) {
    if (!name.startsWith("STRIPE_API_KEY_") || value === undefined || value === "") continue;
    const [, modeName, appId = ""] = NAME.exec(name) ?? [];
    if (modeName === undefined) {
      fail(name, "is not a setting; write STRIPE_API_KEY_LIVE__<appId> or STRIPE_API_KEY_TEST__<appId>");
    }
    const mode = modeName === "LIVE" ? "live" : "test";
    if (!FORM[mode].test(value)) {
      fail(name, `must be a key of ${mode} mode: sk_${mode}_... or rk_${mode}_...`);
    }
    byMode[mode].set(appId, value);
  }
  return { byMode, base: readBase(variables.STRIPE_API_BASE, fail) };
}

function readBase(text: string | undefined, fail: (name: string, message: string) => never): string | null {
  if (text === undefined || text === "") return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const isOrigin = url !== null && url.pathname === "/" && url.search === "" && url.username === "";
  const isPlain = url?.protocol === "http:" &&
    (["localhost", "[::1]"].includes(url.hostname) || /^127(\.\d+){3}$/.test(url.hostname));
  if (url === null || !isOrigin || !(isPlain || url.protocol === "https:")) {
    return fail(
      "STRIPE_API_BASE",
      "must be an origin such as https://stripe.example.com; http: for this machine alone",
    );
  }
  return url.origin;
}

/** The key of an app; null for none. A key without a suffix is that of the only app that has Stripe in the mode. */
export function stripeKeyOf(
  { byMode }: StripeKeys,
  mode: "live" | "test",
  appId: string,
  appsWithStripe: () => readonly string[],
): string | null {
  const own = byMode[mode].get(appId);
  if (own !== undefined) return own;
  const shared = byMode[mode].get("");
  if (shared === undefined) return null;
  const apps = appsWithStripe();
  return apps.length === 1 && apps[0] === appId ? shared : null;
}
