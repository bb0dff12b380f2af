/** Serves every path that no other function has, with buffered responses. */
import { createBufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { composePublicHandle } from './compose/public.ts';

export const handler = createBufferedHandler(composePublicHandle());
