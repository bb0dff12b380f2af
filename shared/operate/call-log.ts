/** Port: searches the log of the functions that answer calls. Lines have no text of clients or upstreams. */

/** All must hold. */
export type LogCondition =
  | { field: string; isOneOf: readonly string[] }
  /** `startsWith` has letters and digits alone. */
  | { field: string; startsWith: string }
  /** A number. */
  | { field: string; above: number };

export interface LogSearch {
  fromMs: number;
  /** Inclusive. */
  toMs: number;
  conditions: readonly LogCondition[];
  /** Lines at most, the newest ones. */
  limit: number;
}

export interface LoggedLine {
  atMs: number;
  /** As the function wrote it. */
  fields: Readonly<Record<string, unknown>>;
}

export interface FoundLines {
  /** Oldest first. */
  lines: LoggedLine[];
  /** What the search read. */
  scannedBytes: number;
}

export interface LogSource {
  groups: readonly string[];
  /** How much the groups hold, and since when. Undefined: it may not be asked, or is not known yet. */
  kept?: { bytes: number; sinceMs: number }[] | undefined;
}

/** Every method may throw a Failure. */
export interface CallLog {
  /** What a search reads. Undefined: this relay has no log that is known. */
  source(): Promise<LogSource | undefined>;
  search(search: LogSearch): Promise<FoundLines>;
}
