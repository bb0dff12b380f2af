/** POST /v1/responses, streamed through a Function URL. */
import { answeringHandler } from '../shared/adapters/answering-handler.ts';
import { responsesEndpoint } from '../shared/relay/responses-endpoint.ts';

export const handler = answeringHandler(responsesEndpoint);
