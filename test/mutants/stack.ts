import type { Mutants } from './mutant.ts';

const template = 'test/infra/template.test.ts';

export const stack: Mutants = {
  'the function that shows accounts may write their balances': {
    file: 'infra/stack/constructs/function-descriptions.ts',
    find: "      quotas: ['GetItem'],\n      ledger: ['Query'],",
    replace: "      quotas: ['GetItem', 'UpdateItem'],\n      ledger: ['Query'],",
    noticed: template,
    by: /the template equals the last reviewed one/,
  },
  'money that is wrong wakes nobody': {
    file: 'infra/stack/observe/alarms.ts',
    find: "      id: 'MoneyWrong',\n      severity: 'page',",
    replace: "      id: 'MoneyWrong',\n      severity: 'ticket',",
    noticed: template,
    by: /the template equals the last reviewed one/,
  },
  'pages go where tickets go': {
    file: 'infra/stack/observe/alarms.ts',
    find: "row.severity === 'page' ? pageTopic : topic",
    replace: 'topic',
    noticed: 'test/infra/alarms.test.ts',
    by: /pages use their own topic/,
  },
  'calls whose function died are not counted': {
    file: 'infra/stack/observe/alarms.ts',
    find: "window.severity === 'page' ? answering : []",
    replace: '[]',
    noticed: 'test/infra/alarm-states.test.ts',
    by: /counts calls whose function/,
  },
  'wrong money rolls back no function that keeps the books': {
    file: 'infra/stack/rollout.ts',
    find: "...(keepsBooks ? [alarms.named('MoneyWrong')] : [])",
    replace: '',
    noticed: 'test/infra/alarm-states.test.ts',
    by: /is rolled back when it fails in two of five minutes/,
  },
  'a bad version is not rolled back by its alarm': {
    file: 'infra/stack/rollout.ts',
    find: 'deploymentInAlarm: true',
    replace: 'deploymentInAlarm: false',
    noticed: template,
    by: /the template equals the last reviewed one/,
  },
  'a trial leaves the log of its edge behind': {
    file: 'infra/stack/constructs/distribution.ts',
    find: '    autoDeleteObjects: disposable,\n  });',
    replace: '    autoDeleteObjects: false,\n  });',
    noticed: template,
    by: /differs from one without options/,
  },
  'the headers of traces are not read from their secret': {
    file: 'infra/stack/constructs/relay-functions.ts',
    find: 'SecretValue.secretsManager(headersSecret).unsafeUnwrap()',
    replace: 'headersSecret',
    noticed: template,
    by: /differs from one without options/,
  },
  'a model that is taken out of the options is dropped unnoticed': {
    file: 'infra/deploy/deployed-options.ts',
    find: 'refused: [...dropped, ...models]',
    replace: 'refused: [...dropped]',
    noticed: 'test/infra/deploy-stage.test.ts',
    by: /refuses to remove a model from bedrockModels/,
  },
  'a deployment goes on in spite of a broken rotation': {
    file: 'infra/deploy/deploy-stage.ts',
    find: 'refused.length + broken.length > 0',
    replace: 'refused.length > 0',
    noticed: 'test/infra/deploy-stage.test.ts',
    by: /refuses a rotation of/,
  },
  'an attribute of keys is renamed': {
    file: 'shared/config/rows/key-row.ts',
    find: '  manage: z.optional(flag),',
    replace: '  manages: z.optional(flag),',
    noticed: 'test/compatibility/compatibility.test.ts',
    by: /every name of the last release is still there/,
  },
  'a command is renamed': {
    file: 'infra/ops/cli/commands/key.ts',
    find: "defineChange('rotate',",
    replace: "defineChange('renew',",
    noticed: 'test/compatibility/compatibility.test.ts',
    by: /every name of the last release is still there/,
  },
};
