/** A process: a proxy that only forwards bytes, which is the practical limit of any Node program. */
import { Agent, createServer, request as sendRequest } from 'node:http';

const agent = new Agent({ keepAlive: true });
const upstream = process.env['UPSTREAM'] ?? '';

createServer((request, response) => {
  const headers = { ...request.headers, host: new URL(upstream).host };
  const sent = sendRequest(
    `${upstream}${request.url}`,
    { method: request.method, headers, agent },
    (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(response);
    },
  );
  sent.on('error', () => response.destroy());
  request.pipe(sent);
}).listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('ready'));
