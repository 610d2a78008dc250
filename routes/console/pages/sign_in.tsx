// The sign-in page.

/** @param fault why the last attempt failed; null for a first attempt */
export function SignIn({ returnTo, fault }: { returnTo: string; fault: string | null }) {
  return (
    <section class="sign-in">
      <h1>Holdfast</h1>
      <form method="post" action="/console/sign-in">
        <input type="hidden" name="to" value={returnTo} />
        <label for="token">Token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="current-password"
          required
          autofocus
          aria-invalid={fault === null ? undefined : "true"}
          aria-describedby={fault === null ? undefined : "fault"}
        />
        {fault === null ? null : <p id="fault" class="fault" role="alert">{fault}</p>}
        <button type="submit" class="primary">Sign in</button>
      </form>
      <p class="hint">The admin token, or the token that your administrator gave you.</p>
    </section>
  );
}
