/** Serves POST /hooks/payments/stripe with buffered responses through a Function URL. */
import { bufferedHandler } from '../shared/adapters/entry/lambda-handlers.ts';
import { hooksHandle } from './compose/hooks.ts';

export const handler = bufferedHandler(hooksHandle());
