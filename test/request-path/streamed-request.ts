/**
 * Runs a streamed request twice on the real composition of the chat function, in a process of its own. V8 logs the
 * compilation of every function, which comes with its first call: between two markers the log has the order in which
 * the first request enters files. Coverage of the second one, which is warm, says which files a request enters at all.
 * The last line of the output is `{entered, text}`: these files, and what the client received.
 */
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pathToFileURL } from 'node:url';

const { root, event } = JSON.parse(process.argv[2] ?? '') as {
  root: string;
  event: object;
};

function requestStarts(): void {}
function requestEnded(): void {}

// What Lambda's runtime provides: the handler writes to the stream that it is given.
Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: unknown) => handler,
    HttpResponseStream: { from: (stream: unknown) => stream },
  },
});
const { handler } = (await import(pathToFileURL(path.join(root, 'functions/chat.ts')).href)) as {
  handler: (event: object, stream: NodeJS.WritableStream, context: object) => Promise<void>;
};
const context = { getRemainingTimeInMillis: () => 60_000, awsRequestId: 'path' };
const stream = new PassThrough();
let text = '';
stream.on('data', (bytes: Buffer) => (text += bytes.toString()));

requestStarts();
await handler(event, new PassThrough().resume(), context);
requestEnded();

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
await session.post('Profiler.takePreciseCoverage');
await handler(event, stream, context);
const { result } = await session.post('Profiler.takePreciseCoverage');
session.disconnect();

const ours = pathToFileURL(`${root}/`).href;
const entered = result
  .filter(({ url }) => /^(shared|functions)\//.test(url.replace(ours, '')))
  .filter(({ functions }) =>
    functions.some(
      ({ functionName, ranges }) => functionName !== '' && ranges.some(({ count }) => count > 0),
    ),
  )
  .map(({ url }) => url.replace(ours, ''));
process.stdout.write(JSON.stringify({ entered, text }));
process.exit(0);
