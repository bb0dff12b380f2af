/** Tools that a Responses client adds during a conversation, at vendors that bind reasoning to the items before it. */
import { expect, it } from 'vitest';
import { asRecord, parseJson, recordsIn } from '../../../../shared/wire/json.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

const toolOf = (name: string) => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: {} },
});

it.each([
  ['gpt-6.2-astra', []],
  ['claude-opus-5-5', []],
  // Bedrock does not support added tools, so it rejects them and gets them at the front.
  ['us.anthropic.claude-opus-5-5-v1:0', [400]],
])('added tools are called at %s after upstream errors %j', async (model, refusals) => {
  const rig = new VendorRig(vendorModels.filter((one) => one.model === model));
  const said = 'call weather {}\ncall radar {}';
  const input: object[] = [{ role: 'user', content: said }];
  const calledNames = async (): Promise<unknown[]> => {
    const body = {
      model: 'm',
      store: false,
      input,
      tools: [toolOf('weather')],
      reasoning: { effort: 'high' },
    };
    const { text } = await rig.core.post(body, { path: '/v1/responses' });
    const output = recordsIn(asRecord(parseJson(text))['output']);
    const calls = output.filter(({ type }) => type === 'function_call');
    const results = calls.map(({ call_id: id }) => ({
      type: 'function_call_output',
      call_id: id,
      output: 'x',
    }));
    input.push(...output, ...results);
    return calls.map(({ name }) => name);
  };
  expect(await calledNames()).toEqual(['weather']);
  input.push({ type: 'additional_tools', role: 'developer', tools: [toolOf('radar')] });
  expect(await calledNames()).toEqual(['radar']);
  expect(rig.calls.filter(({ status }) => status !== 200).map(({ status }) => status)).toEqual(refusals);
  const isKept = refusals.length === 0;
  expect(rig.calls.flatMap(({ notes }) => notes)).toEqual(isKept ? [] : [expect.any(String)]);
});
