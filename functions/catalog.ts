/** Serves all other paths with buffered responses through a Function URL. */
import { bufferedHandler } from '../shared/adapters/lambda/buffered-handler.ts';
import { publicHandle } from './compose/public-handle.ts';

export const handler = bufferedHandler(publicHandle());
