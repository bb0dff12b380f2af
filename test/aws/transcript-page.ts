/**
 * Writes one page from the transcripts of `npm run first-deployment`: each step at each front door, with its minutes. Copies
 * nothing else from a transcript, so the page contains no secret.
 *
 *     node infra/bootstrap/bootstrap.mjs test/aws/transcript-page.ts FOLDER COMMIT > seen-on-aws.md
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** @param transcripts the text of each, by the name of its door */
export function renderPage(
  transcripts: Record<string, string>,
  about: { commit: string; day: string },
): string {
  const doors = Object.entries(transcripts).map(([door, text]) => ({ door, steps: readResults(text) }));
  const names = new Map(
    doors.flatMap(({ steps }) => [...steps].map(([number, { name }]) => [number, name] as const)),
  );
  const rows = [...names]
    .toSorted(([a], [b]) => a - b)
    .map(([number, name]) =>
      [`${number}. ${name}`].concat(doors.map(({ steps }) => steps.get(number)?.result ?? 'not run')),
    );
  const lines = [
    ['step', ...doors.map(({ door }) => `\`${door}\``)],
    doors.map(() => '---').concat('---'),
    ...rows,
  ];
  return [
    '# Seen on AWS',
    '',
    `The steps of [first-deployment.md](first-deployment.md) in an AWS account, on ${about.day}, of commit ${about.commit}. Minutes of each:`,
    '',
    '<!-- oxfmt-ignore -->',
    ...lines.map((cells) => `| ${cells.join(' | ')} |`),
    '',
  ].join('\n');
}

/** Returns the last result of each step, because a step may be repeated. */
function readResults(transcript: string): Map<number, { name: string; result: string }> {
  const steps = new Map<number, { name: string; result: string }>();
  const names = new Map<number, string>();
  const line = /^## (\d+)\. (.+)$|^\*\*Step (\d+) (done|failed)\*\* (?:in|after) ([\d.]+) minutes/gm;
  for (const [, number, name = '', ended, state, minutes = ''] of transcript.matchAll(line)) {
    if (number !== undefined) {
      names.set(Number(number), name);
      steps.set(Number(number), { name, result: 'did not end' });
      continue;
    }
    const result = state === 'done' ? minutes : `**failed** after ${minutes}`;
    steps.set(Number(ended), { name: names.get(Number(ended)) ?? '', result });
  }
  return steps;
}

/** Reads `nightly-DOOR/transcript.md` of each door, as nightly-aws.yml uploads it. */
export function readTranscripts(folder: string): Record<string, string> {
  const texts = readdirSync(folder)
    .toSorted()
    .map((stage) => [
      stage.replace('nightly-', ''),
      readFileSync(path.join(folder, stage, 'transcript.md'), 'utf8'),
    ]);
  return Object.fromEntries(texts) as Record<string, string>;
}

if (import.meta.main) {
  const [folder = '', commit = ''] = process.argv.slice(2);
  const day = new Date().toISOString().slice(0, 10);
  process.stdout.write(renderPage(readTranscripts(folder), { commit, day }));
}
