/** A notice as text for people. Account names and hints are operators' text; a subject holds ASCII on one line. */
import type { Notice } from '../../wire/public/notice.ts';

const subjects: Record<Notice['type'], string> = {
  'balance.low': 'Balance is low',
  'plan.ending': 'Plan ends soon',
  'plan.ended': 'Plan has ended',
  'key.expiring': 'API key expires soon',
};

/** SNS takes at most 100 characters. */
const subjectLength = 100;

export const noticeSubject = ({ type, account }: Notice): string =>
  `${subjects[type]}: ${account}`.replace(/[^ -~]/g, '?').slice(0, subjectLength);

export function noticeText(notice: Notice): string {
  const { id, type, created, account, data } = notice;
  const facts = { account, ...data, type, id, created: new Date(created * 1000).toISOString() };
  const lines = Object.entries(facts).map(([name, value]) => `${name}: ${value}`);
  return `${subjects[type]}.\n\n${lines.join('\n')}\n`;
}
