/** Answers background responses: the function `responses` sends it an event for each. */
import { eventHandler } from '../shared/adapters/lambda/event-handler.ts';
import { responsesEndpoint } from '../shared/endpoints/responses/responses-endpoint.ts';
import { backgroundJob } from './compose/background-job.ts';

export const handler = eventHandler(backgroundJob(responsesEndpoint));
