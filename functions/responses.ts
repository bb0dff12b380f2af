/** Serves POST /v1/responses, streamed through a Function URL. */
import { createStreamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { composeAnsweringHandle } from './compose/answering.ts';

const hosted = composeAnsweringHandle(responsesEndpoint);
export const handler = createStreamingHandler(hosted);
export const { prepare } = hosted;
