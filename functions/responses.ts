/** Serves POST /v1/responses, streamed through a Function URL. */
import { streamingHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { answeringHandle } from './compose/answering.ts';

const hosted = answeringHandle(responsesEndpoint);
export const handler = streamingHandler(hosted);
export const { prepare } = hosted;
