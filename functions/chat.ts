/** Serves POST /v1/chat/completions, streamed through a Function URL. */
import { streamingHandler } from '../shared/adapters/lambda/streaming-handler.ts';
import { chatEndpoint } from '../shared/endpoints/chat/chat-endpoint.ts';
import { answeringHandle } from './compose/answering-handle.ts';

export const handler = streamingHandler(answeringHandle(chatEndpoint));
