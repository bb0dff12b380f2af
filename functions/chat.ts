/** POST /v1/chat/completions, streamed through a Function URL. */
import { answeringHandler } from '../shared/adapters/answering-handler.ts';
import { chatEndpoint } from '../shared/relay/chat-endpoint.ts';

export const handler = answeringHandler(chatEndpoint);
