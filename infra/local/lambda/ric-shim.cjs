/*
 * Lets AWS's aws-lambda-ric run without its compiled addon. It replaces only `./rapid-client.node`, whose
 * three calls (next, done, error) are plain HTTP requests to the Runtime API. The client streams answers in
 * JavaScript.
 */
const http = require('node:http');
const Module = require('node:module');

const [hostname, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, path, { body, headers } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { agent, hostname, port, method, path: `/2018-06-01/runtime/invocation/${path}`, headers },
      (response) => {
        let bodyJson = '';
        response
          .setEncoding('utf8')
          .on('data', (text) => {
            bodyJson += text;
          })
          .on('end', () => resolve({ bodyJson, headers: response.headers }));
      },
    );
    request.on('error', reject).end(body);
  });
}

const json = { 'content-type': 'application/json' };
// The addon's `done` and `error` return before their request ends; `next` must wait for that request.
let posted = Promise.resolve();
let isWarm = false;

const client = {
  initializeClient() {},
  async next() {
    await posted;
    // Node writes its compile cache when a process ends, but the stack kills environments.
    if (isWarm) setImmediate(() => Module.flushCompileCache());
    isWarm = true;
    return call('GET', 'next');
  },
  done(id, body) {
    posted = call('POST', `${id}/response`, {
      body,
      headers: { ...json, 'content-length': Buffer.byteLength(body) },
    });
  },
  error(id, body, xrayCause) {
    const headers = {
      ...json,
      'content-length': Buffer.byteLength(body),
      'lambda-runtime-function-error-type': String(JSON.parse(body).errorType ?? 'Error'),
      'lambda-runtime-function-xray-error-cause': xrayCause,
    };
    posted = call('POST', `${id}/error`, { body, headers });
  },
};

const load = Module._load;
Module._load = function loadOrReplace(request, ...rest) {
  return request.endsWith('rapid-client.node') ? client : load.call(this, request, ...rest);
};

// An environment must not outlive its host. The host holds the other end of stdin, so stdin ends with it.
process.stdin.on('end', () => process.exit(1)).on('error', () => process.exit(1));
process.stdin.resume();
process.stdin.unref?.();
// Ctrl-C sends SIGINT to all processes of the terminal, but the host ends its environments itself.
process.on('SIGINT', () => {});
