/** Serves POST /v1/chat/completions, streamed through a Function URL. */
import { streamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { chatEndpoint } from '../shared/endpoints/chat/chat-endpoint.ts';
import { answeringHandle } from './compose/answering.ts';

const hosted = answeringHandle(chatEndpoint);
export const handler = streamingHandler(hosted);
export const { prepare } = hosted;
