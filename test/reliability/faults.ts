import type { Removal } from './removal.ts';

/** Guards against faults: crashes, stores and upstreams that fail. */
export const faultRemovals: readonly Removal[] = [
  {
    rows: ['F6'],
    file: 'shared/relay/answer/response-queue.ts',
    find: '    if (this.#left || this.#ended) return;\n',
    replace: "    if (this.#left) throw new Error('the client is gone');\n",
    test: 'test/unit/relay/pipeline.test.ts',
    name: 'does not stop the upstream from being read to its usage',
  },
];
