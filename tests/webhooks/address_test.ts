// Which addresses may be called: the URL as a customer gives it, and the address that a name resolved to.

import assert from "node:assert/strict";
import { isPublicAddress, urlFault } from "../../src/process/address.ts";

const PRIVATE = [
  ...["127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255"],
  ...["192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "224.0.0.1"],
  ...["240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254"],
  ...["ff02::1", "fec0::1", "2001:db8::1", "2002:7f00:1::", "100::1", "2001::1", "::ffff:127.0.0.1"],
  ...["::ffff:10.0.0.1", "::7f00:1", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::1"],
];

const PUBLIC = [
  ...["1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.255.255", "223.255.255.254"],
  ...["2606:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"],
];

Deno.test("an address is public only where the whole internet can reach it", () => {
  assert.deepEqual(PRIVATE.filter(isPublicAddress), []);
  assert.deepEqual(PUBLIC.filter((address) => !isPublicAddress(address)), []);
});

Deno.test("a URL is refused for what it says, whichever way it writes an address", () => {
  const rows: [url: string, fault: string | null, withPrivate: string | null][] = [
    ["https://hooks.example.com/a?b=c", null, null],
    ["https://hooks.example.com:8443/", null, null],
    ["https://localhost/", null, null],
    ["https://1.1.1.1/", null, null],
    ["https://[2606:4700::1111]/", null, null],
    ["http://hooks.example.com/", "must be an https URL", null],
    ["ftp://hooks.example.com/", "must be an https URL", "must be an http or https URL"],
    ["hooks.example.com", "must be an https URL", "must be an http or https URL"],
    ["", "must be an https URL", "must be an http or https URL"],
    ["https://u@hooks.example.com/", "must have no user or password", "must have no user or password"],
    ["https://u:p@hooks.example.com/", "must have no user or password", "must have no user or password"],
    ["https://:p@127.0.0.1/", "must have no user or password", "must have no user or password"],
    ...["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1.", "[::1]", "10.0.0.1"]
      .map((host) => [`https://${host}/`, "must not be a private address", null] as [string, string, null]),
    ["https://[::ffff:10.0.0.1]/", "must not be a private address", null],
  ];
  for (const [url, fault, withPrivate] of rows) {
    assert.deepEqual([urlFault(url, false), urlFault(url, true)], [fault, withPrivate], url);
  }
});
