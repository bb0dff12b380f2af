/** Reads the stream of an answer. Holds no more of it than one line, and no line above the bound. */

/** A picture is one line. */
const lineMax = 12_000_000;

export interface ToolCallPart {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
}

export interface Chunk {
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: ToolCallPart[];
      images?: unknown;
    };
    finish_reason?: string | null;
  }[];
  usage?: Usage | null;
  error?: { message?: string };
}

/** Ends with the mark of the end. Throws when the stream ends without it, or has what is no chunk. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk> {
  for await (const line of linesOf(body)) {
    if (!line.startsWith('data:')) continue;
    const data = line.slice(5).trim();
    if (data === '[DONE]') return;
    yield parsed(data);
  }
  throw new Error('the answer was cut off before its end');
}

function parsed(data: string): Chunk {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw new Error('the answer is not in the form of a stream');
  }
  if (typeof value !== 'object' || value === null)
    throw new Error('the answer is not in the form of a stream');
  const chunk = value as Chunk;
  if (chunk.error) throw new Error(chunk.error.message ?? 'the answer failed');
  return chunk;
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let begun: string[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // Only what is new is searched: a long line that comes in small pieces would be searched again with each.
      const [first = '', ...more] = (
        done ? `${decoder.decode()}\n` : decoder.decode(value, { stream: true })
      ).split('\n');
      begun.push(first);
      length += first.length;
      if (length > lineMax) throw new Error('a part of the answer is too long to be shown');
      if (more.length > 0) {
        const rest = more.pop() ?? '';
        yield begun.join('');
        yield* more;
        begun = [rest];
        length = rest.length;
      }
      if (done) return;
    }
  } finally {
    // A reader that stops early must not leave the connection open.
    await reader.cancel().catch(() => undefined);
  }
}
