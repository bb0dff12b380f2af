import type { RelayRequest } from '../../../../shared/relay/http/http.ts';
import { CoreRig, demoKey, hello, keyRow, type Answer, type RigOptions } from '../../../support/core-rig.ts';

export type Value = Record<string, unknown>;

const otherKey = 'sk-other-account';
export const secondKey = 'sk-second-of-acme';
export const plainKey = 'sk-may-not-store';

/** Four keys: two of one account, one of another, and one of the first account that may not store. */
export class StoredRig extends CoreRig {
  #requests = 0;

  constructor(options: RigOptions = {}) {
    super({
      keys: {
        [demoKey]: { row: keyRow({ store: true }) },
        [secondKey]: { row: keyRow({ store: true }) },
        [otherKey]: { row: keyRow({ store: true, account: 'stranger' }) },
        [plainKey]: { row: keyRow() },
      },
      ...options,
    });
    this.upstream({ steps: hello });
  }

  /** The id of the next request. */
  #nextId(): string {
    this.#requests += 1;
    return `01testrequest${String(this.#requests).padStart(13, '0')}`;
  }

  create(body: Value, options: Partial<RelayRequest> & { leaveAfter?: number } = {}): Promise<Answer> {
    return this.post(
      { model: 'm', input: 'hi', ...body },
      { path: '/v1/responses', id: this.#nextId(), ...options },
    );
  }

  /** @param asked such as `GET /resp-1/input_items?limit=1` */
  async ask(asked: string, key = demoKey, options: Partial<RelayRequest> = {}) {
    const [method = '', rest = ''] = asked.split(' ', 2);
    const [path = '', query = ''] = rest.split('?', 2);
    const answer = await this.post(undefined, {
      method,
      path: `/v1/responses${path}`,
      query: new URLSearchParams(query),
      headers: { authorization: `Bearer ${key}` },
      id: this.#nextId(),
      ...options,
    });
    return { ...answer, json: parsed(answer.text) };
  }
}

export const parsed = (text: string): Value => JSON.parse(text);
