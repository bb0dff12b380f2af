/** Request ids, and random numbers that are not secret. */

export interface Ids {
  /** A new request id: 26 characters [0-9a-z], sorts by time of creation. */
  next(): string;
}

export interface Random {
  /** A number in [0, 1), for jitter and weights; never for secrets. */
  next(): number;
}
