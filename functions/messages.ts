/** Serves POST /v1/messages and its count of tokens, streamed through a Function URL. */
import { createStreamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { messagesEndpoint } from '../shared/endpoints/messages/messages-endpoint.ts';
import { composeAnsweringHandle } from './compose/answering.ts';

const hosted = composeAnsweringHandle(messagesEndpoint);
export const handler = createStreamingHandler(hosted);
export const { prepare } = hosted;
