/** View: the candidates of a request, those that were passed over first. */
import { listOf, text, withWord, words, type Fields } from './line-fields.ts';
import type { RequestStep } from './request-view.ts';

export const candidateSteps = (story: Fields): RequestStep[] => [
  ...listOf(story, 'passed_over').map((one): RequestStep => [
    'passed over',
    words(
      placeOf(one),
      standingWords[text(one, 'why')] ?? text(one, 'why'),
      withWord('', text(one, 'kind')),
      withWord('for ', text(one, 'seconds'), ' s more'),
    ),
  ]),
  ...listOf(story, 'tried').map((one): RequestStep => [
    `tried +${text(one, 'at')} ms`,
    words(
      placeOf(one),
      withWord('', text(one, 'outcome')),
      withWord(
        text(one, 'outcome') === 'answered' ? 'first content after ' : 'after ',
        text(one, 'ms'),
        ' ms',
      ),
      withWord('status ', text(one, 'status')),
      withWord('it said ', text(one, 'code')),
      withWord('broke off at +', text(one, 'broke_at'), ' ms'),
      withWord('asked in ', text(one, 'forms'), ' forms'),
      withWord('was ', text(one, 'stood')),
    ),
  ]),
];

const placeOf = (one: Fields): string =>
  `channel ${text(one, 'channel')}${withWord(' (secret ', text(one, 'secret'), ')')}`;

const standingWords: Readonly<Record<string, string>> = {
  blocked: 'its upstream said when it may be asked again',
  resting: 'in cooldown',
  last: 'failed for this account before',
  probe: 'its cooldown was over and another call tried it',
  cannot_carry: 'cannot be sent this call',
};
