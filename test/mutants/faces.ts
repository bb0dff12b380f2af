import type { Mutants } from './mutant.ts';

export const faces: Mutants = {
  'a key that stands in a row is printed whole': {
    file: 'infra/ops/markup.ts',
    find: '(revealed.has(key) ? key :',
    replace: '(key ? key :',
    noticed: 'test/ops/report.test.ts',
    by: /adds up only the calls of its days/,
  },
  'the form of a customer writes over what somebody else wrote meanwhile': {
    file: 'infra/ops/console/pages/customer-forms.ts',
    find: "{ account, seen: field('seen'), attributes }",
    replace: '{ account, attributes }',
    noticed: 'test/console/edits.test.ts',
    by: /is rejected for a customer/,
  },
  'the console takes the form of another site': {
    file: 'infra/ops/console/guard.ts',
    find: '!isOwn || (headers.get',
    replace: '!isOwn && (headers.get',
    noticed: 'test/console/guard.test.ts',
    by: /that writes is rejected/,
  },
  'the address of a console works twice': {
    file: 'infra/ops/console/serve.ts',
    find: 'const isOld = this.#isTokenUsed ||',
    replace: 'const isOld =',
    noticed: 'test/console/guard.test.ts',
    by: /admits one browser with the address/,
  },
  'an action is carried out at each press of its button': {
    file: 'infra/ops/console/visit/visit.ts',
    find: 'readForm(owner, id) !== undefined && all.delete(id)',
    replace: 'readForm(owner, id) !== undefined',
    noticed: 'test/console/edits.test.ts',
    by: /rotates a key, shows the new one once/,
  },
  'a line of a plot goes through 0 where nothing is known': {
    file: 'infra/ops/console/layout/plot.ts',
    find: 'value === null ? []',
    replace: 'value === undefined ? []',
    noticed: 'test/console/layout.test.ts',
    by: /draws bars and lines only from known values/,
  },
  'support reads turns and notices of customers': {
    file: 'infra/access/policies.ts',
    find: "'snapshot#*',",
    replace: "'snapshot#*', 'turn#*', 'notice#*',",
    noticed: 'test/access/policies.test.ts',
    by: /may read published versions/,
  },
  'a grant that an earlier run wrote is said to be written now': {
    file: 'infra/ops/outcomes.ts',
    find: "made.some(({ table }) => table === 'grants')",
    replace: "made.every(({ table }) => table === 'grants')",
    noticed: 'test/ops/accounts.test.ts',
    by: /writes a grant of any size exactly/,
  },
};
