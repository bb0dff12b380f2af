/** Where the key is while the page is open: in memory, or in the tab's storage if the customer says so. */

const stored = 'relay-key';
const keyPattern = /^sk-[\x21-\x7e]{1,200}$/;

export const isKey = (text: string): boolean => keyPattern.test(text);

/**
 * The key behind the `#` of the address, which browsers send nowhere. It is taken out of the address at once: what is
 * shown, shared or copied from then on has no key.
 */
export function takeFromAddress(): string | undefined {
  const written = unescaped(location.hash.slice(1)).trim();
  if (!written.startsWith('sk-')) return undefined;
  history.replaceState(null, '', location.pathname);
  return isKey(written) ? written : undefined;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Storage may be switched off: the key is then in memory alone. */
export function storedKey(): string | undefined {
  try {
    return sessionStorage.getItem(stored) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(stored);
    else sessionStorage.setItem(stored, key);
  } catch {
    // As above.
  }
}
