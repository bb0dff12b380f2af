/** Serves POST /hooks/payments/stripe with buffered responses through a Function URL. */
import { bufferedHandler } from '../shared/adapters/lambda/buffered-handler.ts';
import { hooksHandle } from './compose/hooks-handle.ts';

export const handler = bufferedHandler(hooksHandle());
