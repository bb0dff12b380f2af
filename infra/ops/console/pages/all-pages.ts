/** All pages in the order of the navigation. If two paths match, the first one answers. */
import type { Routes } from '../visit/visit.ts';
import { auditPages } from './audit.ts';
import { bulkPages } from './bulk.ts';
import { channelFormPages } from './channel-forms.ts';
import { channelPages } from './channels.ts';
import { chargePages } from './charges.ts';
import { customerFormPages } from './customer-forms.ts';
import { customerPages } from './customers.ts';
import { historyPages } from './history.ts';
import { invoicePages } from './invoice.ts';
import { keyPages } from './keys.ts';
import { overviewPages } from './overview.ts';
import { requestStoryPages } from './request-story.ts';
import { requestPages } from './requests.ts';
import { settingPages } from './settings.ts';
import { statementPages } from './statements.ts';
import { versionPages } from './versions.ts';

export const pages: readonly ((routes: Routes) => void)[] = [
  overviewPages,
  customerPages,
  customerFormPages,
  keyPages,
  channelPages,
  channelFormPages,
  invoicePages,
  chargePages,
  settingPages,
  bulkPages,
  requestPages,
  requestStoryPages,
  statementPages,
  versionPages,
  historyPages,
  auditPages,
];
