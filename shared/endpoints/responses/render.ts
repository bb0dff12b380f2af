import type { ChatToResponses } from './answer/answer-events.ts';
import { commentFrame, eventFrame, eventPieces } from '../../stream/sse-encode.ts';
import type { ResponsesEvent } from './answer/responses-response.ts';
import { jsonAnswer, streamedAnswer, type Renderer } from '../renderer.ts';

/** One heartbeat in this many is an event: some clients ignore comments and time out after minutes. */
const idlesPerEvent = 4;

/** Coding agents shorten the conversation on this code; a 413 they would send again. */
const tooLarge = { status: 400, code: 'context_length_exceeded' };

/** Responses, `stream: true`: numbered events, then the stream closes. */
export function responsesStreamRenderer(events: ChatToResponses): Renderer {
  let number = 0;
  let idles = 0;
  const data = ({ type, ...rest }: ResponsesEvent): string =>
    JSON.stringify({ type, sequence_number: number++, ...rest });
  const frame = (event: ResponsesEvent): string => eventFrame(event.type, data(event));
  const frames = (list: ResponsesEvent[]): string[] => list.map(frame);
  return {
    ...streamedAnswer,
    tooLarge,
    push(chunk) {
      const written = frames(events.push(chunk));
      if (written.length > 0) idles = 0;
      return written;
    },
    /**
     * The last events repeat the whole answer up to four times, so each is written before the next is made, and its data
     * is not copied into a frame.
     */
    *end() {
      for (const event of events.end()) yield eventPieces(event.type, data(event));
    },
    idle() {
      const opening = frames(events.start());
      if (opening.length > 0) return opening.join('');
      idles += 1;
      if (idles % idlesPerEvent > 0) return commentFrame('ping');
      return frames([events.inProgress()]).join('');
    },
    failed: (error) => frames(events.failed(error)).join(''),
    close: () => frames(events.close()),
    ...asObject(events),
  };
}

/** For answers that are stored. */
const asObject = (events: ChatToResponses): Pick<Renderer, 'whole' | 'queued'> => ({
  whole: (error) => events.whole(error),
  queued: () => events.queued(),
});

/** Responses, `stream: false`: the response object of the stream's last event. */
export function responsesJsonRenderer(events: ChatToResponses): Renderer {
  return {
    ...jsonAnswer,
    tooLarge,
    push(chunk) {
      events.push(chunk);
      return [];
    },
    end: () => [JSON.stringify(events.end().at(-1)?.['response'])],
    close() {
      events.close();
      return [];
    },
    ...asObject(events),
  };
}
