/** Serves POST /v1/messages and its count of tokens, streamed through a Function URL. */
import { streamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { messagesEndpoint } from '../shared/endpoints/messages/messages-endpoint.ts';
import { answeringHandle } from './compose/answering.ts';

const hosted = answeringHandle(messagesEndpoint);
export const handler = streamingHandler(hosted);
export const { prepare } = hosted;
