/** View: what happened to a request, from its lines in the log, as steps in the order of time. */
import type { RequestStep } from './request-view.ts';
import { candidateSteps } from './candidate-steps.ts';
import { objectOf, text, withWord, words, type Fields } from './line-fields.ts';
import type { LoggedRequest } from './logged-request.ts';

export function storySteps({ line, story, events }: LoggedRequest): RequestStep[] {
  const known: Fields = { ...line?.fields, ...story?.fields };
  // A background response has a line of its acceptance first: who called and what was answered is in those of its end.
  if (!line && !story) return [['logged', events.join(', ')]];
  return [
    ['called', calledWords({ ...story?.fields, ...line?.fields })],
    ...(story
      ? [...reservedStep(story.fields), ...candidateSteps(story.fields), ...fieldSteps(story.fields)]
      : []),
    ...reasonStep(known),
    ['answered', answeredWords(line?.fields, objectOf(story?.fields, 'client'))],
    ...(events.length > 0 ? [['also logged', events.join(', ')] satisfies RequestStep] : []),
  ];
}

const calledWords = (fields: Fields): string =>
  words(
    text(fields, 'endpoint') || '-',
    withWord('model ', text(fields, 'model')),
    withWord('by the alias ', text(fields, 'alias')),
    withWord('account ', text(fields, 'account')) || 'no account: the key is unknown',
    withWord('key ', text(fields, 'key_hint')),
  );

function reservedStep(story: Fields): RequestStep[] {
  const reserved = objectOf(story, 'reserved');
  const facts = objectOf(story, 'facts');
  if (facts)
    return [
      [
        'wanted',
        Object.entries(facts)
          .map(([name, value]) => `${name} ${String(value)}`)
          .join(', '),
      ],
    ];
  if (!reserved) return [];
  const slot = text(reserved, 'plan_slot');
  return [
    [
      'held',
      words(
        slot === '' ? `${text(reserved, 'yuan')} yuan` : `a call of the plan entry ${slot}`,
        withWord('at most ', text(reserved, 'max_tokens'), ' output tokens'),
        withWord('lowered by the ', text(reserved, 'limited_by')),
      ),
    ],
  ];
}

function fieldSteps(story: Fields): RequestStep[] {
  const named = (field: string): string => {
    const value = story[field];
    return Array.isArray(value) ? value.map(String).join(' ') : '';
  };
  const [sent, dropped] = [named('sent'), named('dropped')];
  return [
    ...(sent === '' ? [] : [['fields', sent] satisfies RequestStep]),
    ...(dropped === '' ? [] : [['not sent', dropped] satisfies RequestStep]),
  ];
}

const reasonStep = (known: Fields): RequestStep[] => {
  const reason = text(known, 'reason');
  return reason === '' ? [] : [['because', reason]];
};

function answeredWords(line: Fields | undefined, client: Fields | undefined): string {
  const code = text(client, 'code') || text(line, 'code');
  return words(
    `status ${text(client, 'status') || text(line, 'status') || '-'}${withWord(' ', code)}`,
    withWord('first text after ', text(client, 'first_ms'), ' ms'),
    withWord('', text(client, 'length'), ' characters'),
    withWord('over after ', text(client, 'ms') || text(line, 'duration_ms'), ' ms'),
    client?.['left'] === true || line?.['end'] === 'client_gone' ? 'the client had left' : '',
  );
}
