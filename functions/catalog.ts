/** Serves all other paths with buffered responses through a Function URL. */
import { createBufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { composePublicHandle } from './compose/public.ts';

export const handler = createBufferedHandler(composePublicHandle());
