import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { steadyBody } from '../../../../shared/adapters/lambda/steady-body.ts';

const unexpected = (error: unknown): never => {
  throw error;
};

async function* texts() {
  yield 'a';
  yield 'ü';
}

describe('the body that is handed to the runtime', () => {
  test('holds a text, an empty text or a sequence of texts', async () => {
    expect(await text(steadyBody('whole', unexpected))).toBe('whole');
    expect(await text(steadyBody('', unexpected))).toBe('');
    expect(await text(steadyBody(texts(), unexpected))).toBe('aü');
  });

  test('ends normally when its source fails, and reports the failure', async () => {
    const faults: unknown[] = [];
    const bug = new Error('a bug');
    async function* failing() {
      yield 'said';
      throw bug;
    }
    expect(await text(steadyBody(failing(), (error) => faults.push(error)))).toBe('said');
    expect(faults).toEqual([bug]);
  });

  test('tells its source when the reader is gone, also while the source is waited for', async () => {
    let left = 0;
    const { promise: reading, resolve: onReading } = Promise.withResolvers<void>();
    const source: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          onReading();
          return new Promise(() => undefined);
        },
        return: async () => {
          left += 1;
          return { done: true, value: undefined };
        },
      }),
    };
    const broken = new Writable({ write: (_chunk, _encoding, done) => done() });
    const piped = pipeline(steadyBody(source, unexpected), broken);
    await reading;
    broken.destroy(new Error('connection reset'));
    await expect(piped).rejects.toThrow('connection reset');
    expect(left).toBe(1);
  });
});
