/** The names of the tools that an upstream was sent, to tell a whole name from a piece of one. */
import { asRecord, type JsonRecord } from '../../../../wire/json-record.ts';
import { calledNameMax } from '../../../../wire/name-patterns.ts';

export class DeclaredNames {
  readonly lengthMax: number;
  readonly #names: ReadonlySet<string>;
  /** Names that another one begins with. */
  readonly #ambiguous: ReadonlySet<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    const sorted = [...this.#names].toSorted();
    this.#ambiguous = new Set(sorted.filter((name, i) => sorted[i + 1]?.startsWith(name)));
    // A row may set tools of its own.
    this.lengthMax = Math.max(calledNameMax, ...sorted.map(({ length }) => length));
  }

  /** `body`: as it was sent. */
  static of(body: JsonRecord): DeclaredNames {
    const entries = [...listOf(body['tools']), ...listOf(body['functions'])].map(asRecord);
    const names = entries.map((entry) => asRecord(entry['function'] ?? entry['custom'] ?? entry)['name']);
    return new DeclaredNames(names.filter((name) => typeof name === 'string'));
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a name has certainly no more pieces. Without any declared tool every name is taken as whole. */
  isWhole(name: string): boolean {
    return this.#names.size === 0 || (this.#names.has(name) && !this.#ambiguous.has(name));
  }

  /** Whether a tool's name begins so. */
  hasBeginning(text: string): boolean {
    return [...this.#names].some((name) => name.startsWith(text));
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
