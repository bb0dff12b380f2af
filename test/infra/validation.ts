/** CloudFormation's rules and cdk-nag on whole stages, as `cdk synth` applies them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Annotations, Validations } from 'aws-cdk-lib';
import { HIPAASecurityChecks, NIST80053R4Checks, NIST80053R5Checks } from 'cdk-nag';
import { expect, onTestFinished, test, vi } from 'vitest';
import { addStacks, createApp } from '../../infra/stack/create-app.ts';
import { readOptions, resolveStage } from '../../infra/stack/options/read-options.ts';
import { optionSets } from './option-sets.ts';
import { emptyBundles, skipReferenceSearch, synthesizeApp } from './synthesize.ts';

/** `npm test` checks some, including the one with everything; `test/long/validation.test.ts` checks all. */
const asked = Object.values(optionSets).filter(
  (_, at) => process.env['STAGES'] === 'every' || at % 3 === 0 || at === 4,
);

test('stages, from no options to all, pass CloudFormation’s rules and cdk-nag, and warn only that nobody receives alarms', () => {
  const folder = mkdtempSync(join(tmpdir(), 'relay-validation-'));
  onTestFinished(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });
  const printed: string[] = [];
  const record = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  vi.spyOn(process.stderr, 'write').mockImplementation(record);
  vi.spyOn(console, 'error').mockImplementation(record);
  vi.spyOn(console, 'warn').mockImplementation(record);
  const bundlesFolder = emptyBundles(join(folder, 'dist'));
  const [first = {}, ...others] = asked;
  const { app } = createApp({ outputFolder: join(folder, 'out'), bundlesFolder, options: first });
  for (const { stage: name, ...content } of others) {
    const stage = resolveStage(String(name));
    addStacks(app, { ...stage, options: readOptions(stage, content), bundlesFolder });
  }
  // They take as long as everything else, so `npm test` skips them.
  const packs =
    process.env['STAGES'] === 'every' ? [HIPAASecurityChecks, NIST80053R4Checks, NIST80053R5Checks] : [];
  for (const Pack of packs) Validations.of(app).addPlugins(new Pack(app));
  skipReferenceSearch(app);
  Annotations.of(app).acknowledgeWarning('relay:nobody-is-told');
  expect(() => synthesizeApp(app)).not.toThrow();
  expect(printed).toEqual([]);
}, 240_000);
