/** Writes docs/translation.md. */
import { writeFileSync } from 'node:fs';
import { judgeAllAnswers } from './answer-cells.ts';
import { pagePath, renderPage } from './page.ts';
import { judgeAllRequests } from './requests.ts';

writeFileSync(pagePath, renderPage(await judgeAllRequests(), await judgeAllAnswers()));
