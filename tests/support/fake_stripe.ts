// A fake of Stripe's PaymentIntents, behind the real package: as a `fetch`, in memory or served on a port. Each call meets
// a fate: its request or its answer is lost, it fails with or without having done its work, or the bank says something.
// Keys of calls are forgotten after a day.

/** What happens to a call. */
export type Fate =
  | "works"
  /** The request never arrives. */
  | "request_lost"
  /** It does its work, and the answer never arrives. */
  | "answer_lost"
  /** 500 before the work; with a key, the failure is repeated for a day. */
  | "fails"
  /** 500 after the work. */
  | "fails_late"
  | "rate_limited";

/** What the bank says to a confirmation. */
export type Bank = "pays" | "declines" | "processes" | "asks";

export interface FakeIntent {
  readonly id: string;
  readonly amount: number;
  readonly currency: string;
  readonly customer: string;
  readonly metadata: Record<string, string>;
  status: string;
  amount_received: number;
  latest_charge: string | null;
  last_payment_error: { readonly message: string; readonly code: string } | null;
}

interface Stored {
  readonly at: number;
  readonly body: string;
  readonly status: number;
  readonly answer: object;
}

const DAY_MS = 24 * 3_600_000;

/** Stripe's side of payments. */
export class FakeStripe {
  readonly intents = new Map<string, FakeIntent>();
  /** Every call that arrived: method and path. */
  readonly calls: string[] = [];
  /** Ids of PaymentIntents that took money, one for each time. */
  readonly payments: string[] = [];
  now = () => 0;
  fate: (call: string) => Fate = () => "works";
  bank: (intent: FakeIntent) => Bank = () => "pays";
  /** Receives the events that Stripe sends. */
  onEvent: (type: string, object: FakeIntent) => void = () => {};
  /** Customers that Stripe does not know. */
  readonly unknownCustomers = new Set<string>();
  readonly #keys = new Map<string, Stored>();
  #next = 0;

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const body = await request.text();
    const path = new URL(request.url).pathname;
    const call = `${request.method} ${path}`;
    const fate = this.fate(call);
    if (fate === "request_lost") throw new TypeError("connection reset");
    this.calls.push(call);
    if (fate === "rate_limited") return answer(429, refusal("rate_limit_error", "rate_limit", "Slow down"));
    const key = request.headers.get("idempotency-key");
    const known = key === null ? undefined : this.#keys.get(key);
    if (known !== undefined && this.now() - known.at < DAY_MS) {
      if (known.body !== body) {
        return answer(400, refusal("idempotency_error", "idempotency_key_in_use", "Other parameters"));
      }
      if (fate === "answer_lost") throw new TypeError("connection reset");
      return answer(known.status, known.answer, { "idempotent-replayed": "true" });
    }
    const failed = refusal("api_error", "server_error", "Something went wrong");
    const [status, said] = fate === "fails"
      ? [500, failed]
      : this.#work(call, path, new URLSearchParams(body));
    const shown = fate === "fails_late" ? [500, failed] as const : [status, said] as const;
    if (key !== null) this.#keys.set(key, { at: this.now(), body, status: shown[0], answer: shown[1] });
    if (fate === "answer_lost") throw new TypeError("connection reset");
    return answer(shown[0], shown[1]);
  };

  /** Ends a payment that was processing. */
  finish(id: string, isPaid: boolean): void {
    const intent = this.intents.get(id) as FakeIntent;
    if (intent.status !== "processing") return;
    if (isPaid) this.#pay(intent);
    else this.#decline(intent, "card_declined", "Your card was declined.");
  }

  /** The charge of a payment in full, as `charge.refunded` has it. */
  refundOf(id: string): object {
    const { amount, currency, latest_charge } = this.intents.get(id) as FakeIntent;
    return { id: latest_charge, payment_intent: id, refunded: true, amount, currency };
  }

  #work(call: string, path: string, params: URLSearchParams): readonly [number, object] {
    if (call === "POST /v1/payment_intents") return this.#create(params);
    const [, id = "", action] = /^\/v1\/payment_intents\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? [];
    const intent = this.intents.get(id);
    if (intent === undefined) {
      return [404, refusal("invalid_request_error", "resource_missing", `No such payment_intent: '${id}'`)];
    }
    if (action === undefined) return [200, { ...intent }];
    return action === "confirm" ? this.#confirm(intent) : this.#cancel(intent);
  }

  #create(params: URLSearchParams): readonly [number, object] {
    const customer = params.get("customer") ?? "";
    if (this.unknownCustomers.has(customer)) {
      return [400, refusal("invalid_request_error", "resource_missing", `No such customer: '${customer}'`)];
    }
    this.#next += 1;
    const intent: FakeIntent = {
      id: `pi_${this.#next}`,
      amount: Number(params.get("amount")),
      currency: params.get("currency") ?? "",
      customer,
      metadata: { holdfast_intent: params.get("metadata[holdfast_intent]") ?? "" },
      status: "requires_confirmation",
      amount_received: 0,
      latest_charge: null,
      last_payment_error: null,
    };
    this.intents.set(intent.id, intent);
    if (params.get("confirm") === "true") this.#confirm(intent);
    return [200, { ...intent }];
  }

  #confirm(intent: FakeIntent): readonly [number, object] {
    if (!["requires_confirmation", "requires_payment_method"].includes(intent.status)) {
      const code = "payment_intent_unexpected_state";
      return [
        400,
        refusal("invalid_request_error", code, `This PaymentIntent's status is ${intent.status}.`),
      ];
    }
    const said = this.bank(intent);
    if (said === "pays") this.#pay(intent);
    else if (said === "processes") intent.status = "processing";
    else {
      const code = said === "asks" ? "authentication_required" : "card_declined";
      this.#decline(
        intent,
        code,
        said === "asks" ? "Your card needs you to confirm." : "Your card was declined.",
      );
      return [402, refusal("card_error", code, intent.last_payment_error?.message ?? "")];
    }
    return [200, { ...intent }];
  }

  #cancel(intent: FakeIntent): readonly [number, object] {
    if (["succeeded", "processing", "canceled"].includes(intent.status)) {
      const code = "payment_intent_unexpected_state";
      return [
        400,
        refusal("invalid_request_error", code, `This PaymentIntent's status is ${intent.status}.`),
      ];
    }
    intent.status = "canceled";
    this.onEvent("payment_intent.canceled", intent);
    return [200, { ...intent }];
  }

  #pay(intent: FakeIntent): void {
    intent.status = "succeeded";
    intent.amount_received = intent.amount;
    intent.latest_charge = `ch_${intent.id}`;
    intent.last_payment_error = null;
    this.payments.push(intent.id);
    this.onEvent("payment_intent.succeeded", intent);
  }

  #decline(intent: FakeIntent, code: string, message: string): void {
    intent.status = "requires_payment_method";
    intent.last_payment_error = { code, message };
    this.onEvent("payment_intent.payment_failed", intent);
  }
}

function refusal(type: string, code: string, message: string): object {
  return { error: { type, code, message } };
}

function answer(status: number, body: object, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status, headers });
}
