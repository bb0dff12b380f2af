import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../shared/upstreams/exchange.ts';

/** The status that the vendor reports for a response. `lost`: not found. `down`: no answer. */
export type VendorWord =
  | 'queued'
  | 'in_progress'
  | 'completed'
  | 'failed'
  | 'expired'
  | 'cancelled'
  | 'lost'
  | 'down';

interface Counts {
  input_tokens: number;
  output_tokens: number;
}

/**
 * A Responses vendor with completion windows: it accepts a call and is polled for its answer. Rejects what OpenAI rejects
 * [developers.openai.com, "Background mode", November 2026].
 */
export class WindowVendor {
  /** Each request, as `METHOD path`. */
  readonly asked: string[] = [];
  /** The submissions that it accepted. */
  readonly taken: Record<string, unknown>[] = [];
  word: VendorWord = 'queued';
  /** Its status after a cancel. */
  afterCancel: VendorWord = 'cancelled';
  counts: Counts | null = { input_tokens: 5, output_tokens: 3 };
  /** The window that it reports; undefined: the requested one. */
  reported: string | undefined;
  text = 'Hello';
  /** Runs before each answer. */
  before: () => Promise<void> = () => Promise.resolve();

  readonly send = async ({ method = 'POST', url, body }: UpstreamRequest): Promise<UpstreamReply> => {
    const { pathname } = new URL(url);
    this.asked.push(`${method} ${pathname}`);
    await this.before();
    if (this.word === 'down') throw new TransportError('reset', 'down');
    if (pathname.endsWith('/cancel'))
      this.word = ['queued', 'in_progress'].includes(this.word) ? this.afterCancel : this.word;
    if (method === 'GET' || pathname.endsWith('/cancel'))
      return this.word === 'lost'
        ? reply(404, { error: { message: 'not found' } })
        : reply(200, this.#response());
    const asked = JSON.parse(body) as Record<string, unknown>;
    const options = asked['background_options'] as { completion_window?: string } | undefined;
    if (options && (asked['stream'] === true || asked['background'] !== true || asked['store'] === false))
      return reply(400, {
        error: { message: 'background_options needs background', type: 'invalid_request_error' },
      });
    this.taken.push(asked);
    return reply(200, this.#response());
  };

  #response(): object {
    const asked = this.taken.at(-1) ?? {};
    const isOver = !['queued', 'in_progress'].includes(this.word);
    const hasText = this.word === 'completed' || (this.word === 'cancelled' && this.counts !== null);
    const content = [{ type: 'output_text', text: this.text, annotations: [] }];
    return {
      id: 'resp_vendor1',
      object: 'response',
      status: this.word,
      background: true,
      background_options:
        this.reported === undefined ? asked['background_options'] : { completion_window: this.reported },
      service_tier: 'default',
      error: this.word === 'failed' ? { code: 'server_error', message: 'no' } : null,
      output: hasText
        ? [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]
        : [],
      usage: isOver ? this.counts : null,
    };
  }
}

function reply(status: number, body: object): UpstreamReply {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  async function* once(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  return { status, headers: { 'content-type': 'application/json' }, body: once() };
}
