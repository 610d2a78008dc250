// Which addresses webhook endpoints may have. A customer chooses the URL, and this service calls it from inside the
// operator's network, so addresses of private networks are refused.

import ipaddr from "ipaddr.js";

/**
 * Returns what is wrong with the URL of an endpoint, before its name is resolved; null when it may be used.
 *
 * @param allowsPrivate whether `http` and addresses of private networks may be used too
 */
export function urlFault(url: string, allowsPrivate: boolean): string | null {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const protocols = allowsPrivate ? ["https:", "http:"] : ["https:"];
  if (parsed === null || !protocols.includes(parsed.protocol)) {
    return allowsPrivate ? "must be an http or https URL" : "must be an https URL";
  }
  if (parsed.username !== "" || parsed.password !== "") return "must have no user or password";
  const host = hostOf(parsed);
  if (!allowsPrivate && ipaddr.isValid(host) && !isPublicAddress(host)) {
    return "must not be a private address";
  }
  return null;
}

/** The host of a URL, an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/** Whether a host is an address rather than a name. */
export function isAddress(host: string): boolean {
  return ipaddr.isValid(host);
}

/** The range of global unicast addresses. Addresses outside of it are reserved, or embed an IPv4 address. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");
/** Addresses that a gateway makes from IPv4 addresses on networks without IPv4. */
const TRANSLATED_IPV4 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

/** Whether the whole internet can reach an address. An address that is not known to be public counts as private. */
export function isPublicAddress(address: string): boolean {
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === "unicast";
  if (parsed.match(TRANSLATED_IPV4)) {
    return new ipaddr.IPv4(parsed.toByteArray().slice(12)).range() === "unicast";
  }
  return parsed.match(GLOBAL_IPV6) && parsed.range() === "unicast";
}
