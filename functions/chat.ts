/** POST /v1/chat/completions, streamed through a Function URL. */
import { answeringHandler } from './compose/answering-handle.ts';
import { chatEndpoint } from '../shared/endpoints/chat/chat-endpoint.ts';

export const handler = answeringHandler(chatEndpoint);
