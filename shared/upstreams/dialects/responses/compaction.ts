/**
 * A conversation compacted by its upstream, in its own form: at a path of its own, or by an item at the end of the input. Where the
 * upstream does not have that, or what it writes must stay below a low limit, the model is asked for a summary like any other.
 * Source: OpenAI's pages "Compaction" and "Compact a response", November 2026.
 */
import { listIn } from '../../../wire/json.ts';
import type { Dialect, SentBody } from '../../dialect.ts';

const path = '/responses/compact';
/** What the path takes. */
const fields = new Set(
  'model input instructions prompt_cache_key prompt_cache_options prompt_cache_retention service_tier image'.split(
    ' ',
  ),
);
/**
 * The path takes no limit on what is written, and a compaction that meets one ends without an item. What it writes has stayed
 * below this: the call's own limit, which is what is held for it, must not be lower.
 */
const tokensMax = 16_384;

export const addCompaction =
  (usual: Dialect['body']): Dialect['body'] =>
  (call, settings) => {
    const sent = usual(call, settings);
    const { compacts } = call;
    const { quirks } = settings;
    if (!compacts || !sent.carriesItems || !quirks.supportsCompaction) return sent;
    if ((sent.outputTokensMax ?? Infinity) < tokensMax)
      return usual(call, { ...settings, quirks: { ...quirks, supportsCompaction: false } });
    const { tool_choice: _choice, ...body } = sent.body;
    return { ...sent, body, ...(compacts === 'path' && moveToCompactPath(sent)), compacts: true };
  };

function moveToCompactPath({ body }: SentBody): Partial<SentBody> {
  const taken = Object.entries(body).filter(([field]) => fields.has(field));
  // The path says what the last item does.
  const input = listIn(body['input']).slice(0, -1);
  return { body: { ...Object.fromEntries(taken), input }, path, outputTokensMax: undefined };
}
