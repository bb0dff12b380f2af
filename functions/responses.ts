/** POST /v1/responses, streamed through a Function URL. */
import { answeringHandler } from './compose/answering-handle.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';

export const handler = answeringHandler(responsesEndpoint);
