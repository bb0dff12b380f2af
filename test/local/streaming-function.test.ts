import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startControl, type Control } from './control.ts';
import { startHost, type FunctionHost, type HostOptions } from './function-host.ts';

let control: Control;
let host: FunctionHost;

beforeEach(async () => {
  control = await startControl();
});
afterEach(async () => {
  await host.close();
  await control.close();
});

const start = async (options: Partial<HostOptions> = {}): Promise<void> => {
  host = await startHost({ fixture: 'streaming', controlUrl: control.url, ...options });
};

/** Sends a request and resolves with the head of its answer. */
const get = async (path: string): Promise<IncomingMessage> => {
  const sent = request(`${host.url}${path}`).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
};
const nextPiece = async (response: IncomingMessage): Promise<string> =>
  String(((await once(response, 'data')) as [Buffer])[0]);
const who = async (): Promise<string> => text(await get('/who'));

describe('a streaming function under its URL', () => {
  it('answers with the status, headers and cookies of its prelude, and each piece as it is written', async () => {
    await start();
    const response = await get('/pieces');
    expect(response.statusCode).toBe(201);
    expect(response.headers).toMatchObject({ 'x-from': 'prelude', 'set-cookie': ['a=1', 'b=2'] });
    expect(await nextPiece(response)).toBe('one');
    (await control.next('between')).answer();
    expect(await text(response)).toBe('two');
  });

  it('turns a throw before the first byte into a 502 and keeps the environment', async () => {
    await start();
    const response = await get('/throwsEarly');
    expect(response.statusCode).toBe(502);
    expect(response.headers['x-amzn-errortype']).toBe('Error');
    expect(await text(response)).toBe('{"message":"Internal Server Error"}');
    expect(await who()).toBe(String(host.pids()[0]));
  });

  it('cuts the connection when the function throws in mid-stream', async () => {
    await start();
    const response = await get('/throwsLate');
    expect(response.statusCode).toBe(200);
    (await control.next('between')).answer();
    await expect(text(response)).rejects.toThrow('aborted');
  });

  it('kills an invocation at its deadline and serves the next one from a fresh environment', async () => {
    await start({ timeoutMs: 1000 });
    await expect(text(await get('/hangs'))).rejects.toThrow('aborted');
    expect(host.log.join('\n')).toContain('Task timed out after 1.00 seconds');
    expect(await who()).toBe(String(host.pids()[1]));
  });

  it('runs to its end after the client disconnects', async () => {
    await start();
    const response = await get('/goesOn');
    await nextPiece(response);
    const between = await control.next('between');
    response.destroy();
    await once(response, 'close');
    between.answer();
    (await control.next('finished')).answer();
    expect(await who()).toBe(String(host.pids()[0]));
  });

  it('is blocked by a client that does not read', async () => {
    await start();
    const response = await get('/floods');
    const first = await Promise.race([
      control.next('stuck').then((call) => [call, 'stuck'] as const),
      control.next('flooded').then((call) => [call, 'flooded'] as const),
    ]);
    first[0].answer();
    expect(first[1]).toBe('stuck');
    let bytes = 0;
    for await (const piece of response) bytes += (piece as Buffer).length;
    expect(bytes).toBe(48 * 1024 * 1024);
  });
});

describe('an answer that is cut while its client reads nothing', () => {
  it('by the function closes the connection, and the environment takes the next request meanwhile', async () => {
    await start({ environmentsMax: 1 });
    const response = await get('/breaksOff');
    (await control.next('stuck')).answer();
    expect(await who()).toBe(String(host.pids()[0]));
    await expect(text(response)).rejects.toThrow('aborted');
    expect(host.pids()).toHaveLength(1);
  });

  it('by the death of its process closes the connection', async () => {
    await start();
    const response = await get('/floods');
    await control.next('stuck');
    process.kill(host.pids()[0] ?? 0, 'SIGKILL');
    expect(await who()).toBe(String(host.pids()[1]));
    await expect(text(response)).rejects.toThrow('aborted');
  });
});

describe('the environments of a function', () => {
  it('are reused for one request after another', async () => {
    await start();
    expect(await who()).toBe(await who());
    expect(host.pids()).toHaveLength(1);
  });

  it('grow in number to the maximum, beyond which requests wait for a free one', async () => {
    await start({ environmentsMax: 2 });
    const answers = [1, 2, 3].map(async () => text(await get('/waits')));
    const [first, second] = [await control.next('waiting'), await control.next('waiting')];
    first.answer();
    const third = await control.next('waiting');
    expect(third.body).toBe(first.body);
    second.answer();
    third.answer();
    const pids = await Promise.all(answers);
    expect(new Set(pids).size).toBe(2);
    expect(host.pids()).toHaveLength(2);
  });

  it('take no request while the handler is still busy after its last byte', async () => {
    await start();
    const busy = await text(await get('/settlesAfterEnd'));
    const settling = await control.next('settling');
    expect(await who()).not.toBe(busy);
    settling.answer();
  });

  it('are replaced after a kill: the running request is cut, the next one is served', async () => {
    await start();
    const response = await get('/goesOn');
    await nextPiece(response);
    process.kill(host.pids()[0] ?? 0, 'SIGKILL');
    await expect(text(response)).rejects.toThrow('aborted');
    expect(await who()).toBe(String(host.pids()[1]));
  });
});

describe('the edge in front of a function', () => {
  it('answers 504 with its own page if the function is silent for too long', async () => {
    await start({ environmentsMax: 1, readTimeoutMs: 500 });
    await who();
    const response = await get('/silent');
    expect(response.statusCode).toBe(504);
    expect(response.headers['content-type']).toBe('text/html');
    (await control.next('silent')).answer();
  });

  it('cuts an answer that falls silent for too long', async () => {
    // A busy machine may take longer than half a second for the first piece.
    await start({ environmentsMax: 1, readTimeoutMs: 3000 });
    await who();
    const response = await get('/goesOn');
    await expect(text(response)).rejects.toThrow('aborted');
    (await control.next('between')).answer();
    (await control.next('finished')).answer();
  });
});
