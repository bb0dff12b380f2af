/** All pages, in the order of the navigation. */
import type { Routes } from '../visit/visit.ts';
import { auditPages } from './audit.ts';
import { channelActionPages, channelFormPages } from './channel-forms.ts';
import { channelPage, channelPages } from './channels.ts';
import { chargeFormPages, chargePages } from './charges.ts';
import { accountFormPages, closeCustomerPage, planPages, newCustomerPage } from './customer-forms.ts';
import { grantFormPage } from './grants.ts';
import { customerPage } from './customer.ts';
import { customerPages } from './customers.ts';
import { keyFormPages, keyPages } from './keys.ts';
import { leakedKeyPages } from './leaked-key.ts';
import { overviewPages } from './overview.ts';
import { logPages, refundPages, requestPages } from './requests.ts';
import { statementPages } from './statements.ts';
import { versionPages } from './versions.ts';

export const pages: readonly ((routes: Routes) => void)[] = [
  overviewPages,
  customerPages,
  newCustomerPage,
  grantFormPage,
  planPages,
  accountFormPages,
  closeCustomerPage,
  customerPage,
  keyPages,
  keyFormPages,
  leakedKeyPages,
  channelPages,
  channelFormPages,
  channelActionPages,
  channelPage,
  chargePages,
  chargeFormPages,
  requestPages,
  refundPages,
  logPages,
  statementPages,
  versionPages,
  auditPages,
];
