/** Reads the answer of either endpoint, streamed or not, and classifies how it ended for the client. */
import type { CallEnd, CallSeen } from '../checker/observations.ts';

interface Frame {
  type?: string;
  delta?: unknown;
  choices?: {
    delta?: { content?: string | null };
    message?: { content?: string | null };
    finish_reason?: string | null;
  }[];
  output?: { content?: { text?: string }[] }[];
  status?: string;
  error?: CallSeen['error'] | null;
  response?: { error?: CallSeen['error'] | null };
}

export class AnswerReader {
  text = '';
  error: CallSeen['error'];
  #rest = '';
  #body = '';
  #finished = false;
  #done = false;
  /** An event is not JSON. */
  #broken = false;
  readonly #streamed: boolean;

  constructor(streamed: boolean) {
    this.#streamed = streamed;
  }

  read(piece: string): void {
    if (!this.#streamed) {
      this.#body += piece;
      return;
    }
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) this.#line(line.slice(6).trimEnd());
  }

  /** @param complete the HTTP answer ended normally */
  end(complete: boolean): CallEnd {
    if (!this.#streamed && complete) this.#whole();
    if (this.error !== undefined) return 'error';
    if (this.#finished && this.#done && !this.#broken) return 'whole';
    return complete ? 'silent' : 'cut';
  }

  #line(data: string): void {
    if (data === '[DONE]') {
      this.#done = true;
      return;
    }
    const frame = parsed(data);
    if (frame === undefined) {
      this.#broken = true;
      return;
    }
    const [choice] = frame.choices ?? [];
    this.text += choice?.delta?.content ?? '';
    if (choice?.finish_reason) this.#finished = true;
    if (frame.type === 'response.output_text.delta') this.text += String(frame.delta);
    if (frame.type === 'response.completed') this.#finished = this.#done = true;
    if (frame.type === 'response.failed' || frame.type === 'response.incomplete')
      this.error = frame.response?.error ?? { code: frame.type };
    if (frame.error) this.error = frame.error;
  }

  #whole(): void {
    const frame = parsed(this.#body.trim());
    if (frame === undefined) return;
    if (frame.error) this.error = frame.error;
    const [choice] = frame.choices ?? [];
    this.text += choice?.message?.content ?? '';
    for (const { content = [] } of frame.output ?? []) for (const { text = '' } of content) this.text += text;
    const isWhole = choice?.finish_reason === 'stop' || frame.status === 'completed';
    if (isWhole) this.#finished = this.#done = true;
  }
}

function parsed(text: string): Frame | undefined {
  try {
    return JSON.parse(text) as Frame;
  } catch {
    return undefined;
  }
}

/** The error of a refusal. Undefined fields: the host answered, not the relay. */
export function refusalOf(body: string): NonNullable<CallSeen['error']> {
  const frame = parsed(body);
  return frame?.error ?? { message: body.slice(0, 80) };
}
