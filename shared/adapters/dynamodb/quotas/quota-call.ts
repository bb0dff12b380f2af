/** Calls of the table `quotas`: tells writes that changed nothing from those of unknown outcome. */
import { StoreBusy, StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import { changedNothing, conditionalCall, type ConditionalReply } from '../dynamo-client.ts';

export async function quotaCall<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await conditionalCall(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && changedNothing(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}
