// The service over HTTP. Addresses are relative, so that a proxy may serve the page in a folder.

const KEY = "driftbandit.key"; // in sessionStorage, so that it ends with the tab

export const storedKey = () => sessionStorage.getItem(KEY);
export const storeKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

/** An answer of the service other than success. */
export class Problem extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter; // seconds
  }

  /** Whether another attempt would not solve it. */
  get isFinal() {
    return [401, 403, 404].includes(this.status);
  }
}

export async function call(path, signal) {
  const key = storedKey();
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch(path, { headers, signal, cache: "no-store" });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const detail = said.detail ?? said.title ?? `The server answered ${response.status}.`;
  throw new Problem(response.status, detail, Number(response.headers.get("Retry-After")) || 0);
}

export async function load(path, signal) {
  return (await call(path, signal)).json();
}
