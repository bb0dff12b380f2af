/** Answers in the dialect of AWS's query APIs. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';

export interface QueryCall {
  action: string;
  parameters: URLSearchParams;
  region: string;
  response: ServerResponse;
}

/** An element's content: text, elements, or (as a list) one `member` element for each item. */
export type Xml = string | readonly Xml[] | { readonly [element: string]: Xml };

function render(content: Xml): string {
  if (typeof content === 'string') {
    return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  }
  if (isList(content)) return content.map((item) => `<member>${render(item)}</member>`).join('');
  return Object.entries(content)
    .map(([name, value]) => `<${name}>${render(value)}</${name}>`)
    .join('');
}

const isList = (content: Xml): content is readonly Xml[] => Array.isArray(content);

export function answerXml({ action, response }: QueryCall, result: Xml): void {
  const requestId = randomUUID();
  response.writeHead(200, { 'content-type': 'text/xml' });
  response.end(
    render({
      [`${action}Response`]: { [`${action}Result`]: result, ResponseMetadata: { RequestId: requestId } },
    }),
  );
}

export function refuse(response: ServerResponse, code: string, message: string, status = 400): void {
  response.writeHead(status, { 'content-type': 'text/xml' });
  response.end(render({ ErrorResponse: { Error: { Type: 'Sender', Code: code, Message: message } } }));
}
