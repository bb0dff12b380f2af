import { describe, expect, it } from 'vitest';
import { chatError } from '../../../shared/upstreams/dialects/chat/events.ts';

describe("an upstream's error", () => {
  const google = {
    code: 400,
    message: 'API key not valid.',
    status: 'INVALID_ARGUMENT',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
      { reason: 'a b' },
    ],
  };
  it.each<[string, unknown, unknown]>([
    [
      "OpenAI's",
      { error: { message: 'm', type: 't', param: 'p', code: 'c', extra: 1 } },
      { message: 'm', type: 't', param: 'p', code: 'c' },
    ],
    [
      'Google’s, with its reasons, in a list',
      [{ error: google }],
      { message: google.message, type: 'INVALID_ARGUMENT', code: 400, reasons: ['API_KEY_INVALID'] },
    ],
    ['a text', { error: 'm', code: 'c' }, { message: 'm', code: 'c' }],
    [
      'bare, with a numeric code',
      { object: 'error', message: 'm', type: 'BadRequestError', code: 400 },
      { message: 'm', type: 'BadRequestError', code: 400 },
    ],
    ['a detail', { detail: 'm' }, { message: 'm' }],
    ['a list of details', { detail: [{ msg: 'm' }] }, { message: 'm' }],
    [
      'a list of details inside the message, with the path of the field',
      {
        object: 'error',
        message: {
          detail: [{ type: 'extra_forbidden', loc: ['body', 'user'], msg: 'Extra inputs are not permitted' }],
        },
      },
      { message: 'Extra inputs are not permitted', param: 'user' },
    ],
    ['none', { choices: [] }, undefined],
    ['no object', 'm', undefined],
  ])('is read: %s', (_case, body, expected) => {
    expect(chatError(body)).toEqual(expected);
  });
});
