import { pack } from '../../shared/adapters/dynamodb/responses/response-items.ts';
import { encodeHead } from '../../shared/adapters/dynamodb/responses/response-store.ts';
import type { ResponseHead } from '../../shared/relay/ports/stored.ts';

type Row = Record<string, unknown>;

const defined = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

/** The items of a stored response of the account acme, with a batch of events. */
export async function storedRows(requestId: string, changes: Partial<ResponseHead> = {}): Promise<Row[]> {
  const id = `resp-${requestId}`;
  const head: ResponseHead = {
    account: 'acme',
    id,
    status: 'completed',
    createdAt: 1_795_000_000,
    expires: 9_000_000_000,
    ancestors: [],
    turn: 1,
    conversationLength: 120,
    ...changes,
  };
  const said = [
    { id: 'msg_1', type: 'message', content: [{ type: 'input_text', text: 'a secret question' }] },
  ];
  const output = [{ type: 'message', content: [{ type: 'output_text', text: 'a secret answer' }] }];
  const body = { input: said, response: { id, object: 'response', output }, seal: 'a sealed state' };
  const { name, parts, bytes } = await pack(body);
  const events = await pack(['event: x\ndata: {}\n\n']);
  const expires = head.expires;
  const { account } = head;
  return [
    defined({ ...encodeHead(head), body_name: name, parts: 0, bytes, body: parts[0] }),
    {
      account,
      id: `${id}#e#0000000000000000`,
      from: 0,
      expires,
      body_name: events.name,
      parts: 0,
      bytes: events.bytes,
      body: events.parts[0],
    },
  ];
}
