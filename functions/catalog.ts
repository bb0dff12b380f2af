/** Serves all other paths with buffered responses through a Function URL. */
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { publicHandle } from './compose/public.ts';

export const handler = bufferedHandler(publicHandle());
