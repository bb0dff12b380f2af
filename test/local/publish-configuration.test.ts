import { expect, test } from 'vitest';
import { publishConfiguration } from '../../infra/local/start-stack.ts';
import { MarksLost } from '../../shared/relay/ports/config-store.ts';

/** @param errorType as Lambda reports it: the name of the error that the function throws */
async function published(errorType: string): Promise<string[]> {
  const call = () => Promise.reject(Object.assign(new Error('config: no answer'), { errorType }));
  const printed: string[] = [];
  const functions = new Map([['Config', { settings: { name: 'config' }, call }]]);
  await publishConfiguration(functions, (line) => printed.push(line));
  return printed;
}

test('a local start continues if only marks were lost, and fails if the configuration was not published', async () => {
  expect(await published(new MarksLost().name)).toEqual(['[start] config: no answer']);
  await expect(published('StoreUnavailable')).rejects.toMatchObject({
    name: 'StartError',
    message: 'cannot publish the configuration: config: no answer',
  });
});
