/** OpenAI's Responses, which Azure and GPT models on Bedrock speak in the same form. */
import type { Dialect } from '../../dialect.ts';
import { ResponsesReader } from './events.ts';
import { responsesError } from './failure.ts';
import { outputTokensMin, responsesBody } from './request.ts';

export const responses: Dialect = {
  name: 'responses',
  outputTokensMin,
  path: '/responses',
  body: responsesBody,
  Reader: ResponsesReader,
  error: responsesError,
};
