/** Serves POST /v1/chat/completions and POST /v1/embeddings, streamed through a Function URL. */
import { createStreamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { chatEndpoint } from '../shared/endpoints/chat/chat-endpoint.ts';
import { embeddingsEndpoint } from '../shared/endpoints/embeddings/embeddings-endpoint.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { composeAnsweringHandles } from './compose/answering.ts';

const hosted = composeAnsweringHandles(readEnvironment())(chatEndpoint, embeddingsEndpoint);
export const handler = createStreamingHandler(hosted);
export const { prepare } = hosted;
