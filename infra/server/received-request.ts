/** Node's request in the terms that all hosts share. */
import type { IncomingMessage } from 'node:http';
import type { HostRequest } from '../../shared/adapters/http-entry/host-request.ts';

export type HostFacts = Required<Pick<HostRequest, 'host' | 'deadlineMs' | 'ends' | 'body' | 'room'>>;

export function hostRequest(request: IncomingMessage, host: HostFacts): HostRequest {
  const target = request.url ?? '/';
  const mark = target.indexOf('?');
  return {
    ...host,
    method: request.method ?? 'GET',
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? '' : target.slice(mark + 1),
    headers: Object.fromEntries(
      Object.entries(request.headersDistinct).map(([name, values]) => [name, values?.join(', ')]),
    ),
  };
}
