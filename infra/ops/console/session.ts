/**
 * The one session of a console on loopback: a token in the address that works once and within a minute becomes a cookie.
 * The cookie's path is a secret too: cookies know no ports, so another server of this machine is never sent it.
 */
import { isSame } from './same-text.ts';
import type { Identity } from './visit/visit.ts';

export const tokenMs = 60_000;
export const idleMs = 30 * 60_000;
const cookieName = 'relay_console';

/** `hex`: so many random bytes. `name`: whose session it is, as pages show it. */
export type SessionParts = { now: () => number; hex: (bytes: number) => string; name: string };

export class Session {
  readonly token: string;
  /** The path of all pages: `/3fa9.../`. */
  readonly base: string;
  readonly #cookie: string;
  readonly #identity: Identity;
  readonly #now: () => number;
  readonly #madeMs: number;
  #isTokenUsed = false;
  #lastMs: number;

  constructor({ now, hex, name }: SessionParts) {
    this.token = hex(32);
    this.base = `/${hex(12)}/`;
    this.#cookie = hex(32);
    this.#identity = { name, formToken: hex(32) };
    this.#now = now;
    this.#madeMs = now();
    this.#lastMs = now();
  }

  /** The header that makes the browser's cookie. Undefined: the token is wrong, was used, or is over. */
  exchange(token: string): string | undefined {
    const isRight = isSame(token, this.token);
    if (!isRight || this.#isTokenUsed || this.#now() - this.#madeMs > tokenMs) return undefined;
    this.#isTokenUsed = true;
    this.#lastMs = this.#now();
    return `${cookieName}=${this.#cookie}; Path=${this.base}; HttpOnly; SameSite=Strict`;
  }

  /** Whose request it is. Undefined: nobody's. */
  identityOf(cookies: string | null): Identity | undefined {
    if (!this.#isTokenUsed || this.isOver()) return undefined;
    const values = (cookies ?? '').split(';').map((each) => each.trim());
    const isOwn = values.some((each) => isSame(each, `${cookieName}=${this.#cookie}`));
    if (!isOwn) return undefined;
    this.#lastMs = this.#now();
    return this.#identity;
  }

  /** Nobody came within a minute, or nothing was asked for 30. */
  isOver(): boolean {
    return this.#now() - this.#lastMs > (this.#isTokenUsed ? idleMs : tokenMs);
  }
}
