/** Observes a place of a request from outside: the upstream body, and the headers and errors of the answer. */
import { asRecord, isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import { CoreRig, demoKey } from '../support/core-rig.ts';
import { answers, endpoints, type Dialect } from './endpoints.ts';
import type { Place } from './places.ts';
import type { Shape } from './sdk-types.ts';
import { findUnknownField } from './strict.ts';

/** `mended`: it takes effect in another form. `lost`: no effect, without a report. */
export type Outcome = 'carried' | 'mended' | 'named' | 'refused' | 'lost';

interface Seen {
  status: number;
  text: string;
  up: JsonRecord;
  /** The values of `up` by their paths. */
  leaves: ReadonlyMap<string, unknown>;
  dropped: readonly string[];
}

interface Judged {
  outcome: Outcome;
  seen: Seen;
}

/** One endpoint and one upstream. */
export class Observer {
  readonly #endpoint: Dialect;
  readonly #dialect: Dialect;
  readonly #types: readonly Shape[];
  readonly #lenient: CoreRig;
  readonly #known = new Map<string, Seen>();

  /** @param types request types that a strict upstream knows */
  constructor(endpoint: Dialect, dialect: Dialect, types: readonly Shape[]) {
    this.#endpoint = endpoint;
    this.#dialect = dialect;
    this.#types = types;
    this.#lenient = this.#rig([]);
  }

  /** The worst result over the values of a place. A strict upstream is used if it differs. */
  async judge(place: Place): Promise<{ lenient: Judged; strict: Judged }> {
    const [first, second] = place.empty;
    let empty = await this.#see(first ?? {});
    if (empty.status !== 200 && second) empty = await this.#see(second);
    const lenient: Judged[] = [];
    const strict: Judged[] = [];
    for (const { value, body } of place.filled) {
      const seen = await this.#see(body);
      const isKnown = findUnknownField(seen.up, this.#types) === undefined;
      const refused = isKnown ? seen : await this.#ask(this.#rig(this.#types), body);
      lenient.push({ outcome: compare(place, { value, seen, empty }), seen });
      strict.push({ outcome: compare(place, { value, seen: refused, empty }), seen: refused });
    }
    return { lenient: worstOf(lenient), strict: worstOf(strict) };
  }

  async #see(body: JsonRecord): Promise<Seen> {
    const key = JSON.stringify(body);
    const seen = this.#known.get(key) ?? (await this.#ask(this.#lenient, body));
    this.#known.set(key, seen);
    return seen;
  }

  async #ask(rig: CoreRig, body: JsonRecord): Promise<Seen> {
    const headers = this.#endpoint === 'messages' ? { headers: { 'x-api-key': demoKey } } : {};
    // A call that the relay rejects sends nothing.
    rig.sent.length = 0;
    const answer = await rig.post(body, { path: endpoints[this.#endpoint].path, ...headers });
    const dropped = (answer.headers['x-relay-dropped'] ?? '').split(', ').filter((name) => name !== '');
    if (answer.headers['x-relay-tool-choice'] !== undefined) dropped.push('tool_choice');
    const up = asRecord(rig.sent.at(-1)?.json);
    return { status: answer.status, text: answer.text, up, leaves: new Map(listLeaves(up)), dropped };
  }

  /** @param types what the upstream knows; everything if absent */
  #rig(types: readonly Shape[]): CoreRig {
    const headers = { 'content-type': 'application/json' };
    return new CoreRig({
      channels: [{ dialect: this.#dialect, mapper: { m: 'up' } }],
      send: async ({ body }) => {
        const unknown = types.length > 0 ? findUnknownField(JSON.parse(body), types) : undefined;
        const said = unknown === undefined ? answers[this.#dialect] : refusal(unknown, this.#dialect);
        return { status: unknown === undefined ? 200 : 400, headers, body: bytesOf(said) };
      },
    });
  }
}

async function* bytesOf(document: object): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(JSON.stringify(document));
}

/** In the vendors' words. */
function refusal(field: string, dialect: Dialect): object {
  const type = 'invalid_request_error';
  if (dialect === 'messages')
    return { type: 'error', error: { type, message: `${field}: Extra inputs are not permitted` } };
  return {
    error: { message: `Unknown parameter: '${field}'.`, type, param: field, code: 'unknown_parameter' },
  };
}

const order: readonly Outcome[] = ['carried', 'mended', 'named', 'refused', 'lost'];

function worstOf(judged: readonly Judged[]): Judged {
  const [worst] = judged.toSorted((a, b) => order.indexOf(b.outcome) - order.indexOf(a.outcome));
  if (!worst) throw new Error('a place has no value');
  return worst;
}

function compare(place: Place, { value, seen, empty }: { value: unknown; seen: Seen; empty: Seen }): Outcome {
  const words = [place.name, ...place.path.split(/[.[\] ]+/).filter((word) => word !== '')];
  if (seen.status !== 200) {
    const isClear = words.some((word) => new RegExp(`\\b${word}\\b`).test(seen.text));
    return seen.status < 500 && isClear ? 'refused' : 'lost';
  }
  const isNamed = (name: string): boolean =>
    !empty.dropped.includes(name) || words.includes(name.split('.').at(-1) ?? '');
  if (seen.dropped.some(isNamed)) return 'named';
  const added = [...seen.leaves].filter(([path, leaf]) => empty.leaves.get(path) !== leaf);
  if (holds(added, value, place.name)) return 'carried';
  return added.length > 0 || empty.leaves.size > seen.leaves.size ? 'mended' : 'lost';
}

export function listLeaves(value: unknown, path = ''): [string, unknown][] {
  if (!Array.isArray(value) && !isRecord(value)) return [[path, value]];
  const inner = Object.entries(value);
  if (inner.length === 0) return [[path, JSON.stringify(value)]];
  return inner.flatMap(([name, each]) => listLeaves(each, `${path}.${name}`));
}

/** Texts are searched anywhere, because they are unique; other values in a field of the same name. */
function holds(added: readonly [string, unknown][], value: unknown, name: string): boolean {
  const leaves = listLeaves(value);
  const texts = leaves.flatMap(([, leaf]) =>
    typeof leaf === 'string' && leaf.includes('probe7') ? [leaf] : [],
  );
  if (texts.length > 0)
    return texts.every((text) => added.some(([, each]) => typeof each === 'string' && each.includes(text)));
  return leaves.every(([path, leaf]) => {
    const field = path.split('.').at(-1) || name;
    return added.some(
      ([at, each]) => each === leaf && (at.split('.').includes(field) || /^\d+$/.test(field)),
    );
  });
}
