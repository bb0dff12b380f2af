import { PassThrough, Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Terminal } from '../../infra/ops/cli/terminal.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

function terminalOf(input = Readable.from([''])) {
  let errors = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      errors += String(chunk);
      done();
    },
  });
  const output = new PassThrough();
  const terminal = new Terminal({ input, output, errors: stream, environment: {} }).in('json');
  return { terminal, output, errors: () => errors };
}

it('a slow command reports every 2 seconds that it is still working, only on standard error', async () => {
  const { terminal, output, errors } = terminalOf();
  const work = Promise.withResolvers<void>();
  let requests = 0;
  const read = (): string => `, ${(requests += 5)} requests`;
  const working = terminal.whileWorking('customer show', () => work.promise, read);
  vi.advanceTimersByTime(1999);
  expect(errors()).toBe('');
  vi.advanceTimersByTime(2001);
  const said = '... customer show: 2 s, 5 requests\n... customer show: 4 s, 10 requests\n';
  expect(errors()).toBe(said);
  work.resolve();
  await working;
  vi.advanceTimersByTime(10_000);
  expect(errors()).toBe(said);
  expect(output.read()).toBeNull();
});

it('a command reports no progress while it waits for input, or after other output', async () => {
  const input = new PassThrough();
  const { terminal, errors } = terminalOf(input);
  const working = terminal.whileWorking('key check', () => terminal.readInput('Paste the key'));
  vi.advanceTimersByTime(6000);
  expect(errors()).toBe('');
  input.end('key');
  expect(await working).toBe('key');
});
