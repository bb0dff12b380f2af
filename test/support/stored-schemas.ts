import * as z from 'zod';
import { outputItem, responseObject, responsesEventOf } from './wire-schemas.ts';

/** The responses of the stored-response paths by OpenAI's published schema: exactly its fields. */
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}[\\w-]+$`));

export const storedResponse = responseObject.extend({
  status: z.enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
  background: z.boolean(),
  store: z.literal(true),
  previous_response_id: id('resp-').nullable(),
});

export const storedEvent = responsesEventOf(storedResponse, outputItem);

export const deletedResponse = z.strictObject({
  id: id('resp-'),
  object: z.literal('response'),
  deleted: z.literal(true),
});

const inputText = z.strictObject({ type: z.literal('input_text'), text: z.string() });
const inputImage = z.strictObject({
  type: z.literal('input_image'),
  image_url: z.string().nullable(),
  detail: z.enum(['low', 'high', 'auto', 'original']),
});
const inputPart = z.discriminatedUnion('type', [inputText, inputImage]);
const itemStatus = z.enum(['in_progress', 'completed', 'incomplete']);
const output = {
  status: itemStatus,
  call_id: z.string(),
  output: z.union([z.string(), z.array(inputPart)]),
};

export const itemPage = z.strictObject({
  object: z.literal('list'),
  data: z.array(
    z.union([
      outputItem,
      z.strictObject({
        id: id('msg_'),
        type: z.literal('message'),
        role: z.enum(['user', 'system', 'developer']),
        status: itemStatus,
        content: z.array(inputPart),
      }),
      z.strictObject({ id: id('fco_'), type: z.literal('function_call_output'), ...output }),
      z.strictObject({ id: id('ctco_'), type: z.literal('custom_tool_call_output'), ...output }),
    ]),
  ),
  first_id: z.string(),
  last_id: z.string(),
  has_more: z.boolean(),
});
