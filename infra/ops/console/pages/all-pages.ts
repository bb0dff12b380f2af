/** All pages in the order of the navigation. If two paths match, the first one answers. */
import type { Routes } from '../visit/visit.ts';
import { addAuditPages } from './audit.ts';
import { addBulkPages } from './bulk.ts';
import { addChannelForms } from './channel-forms.ts';
import { addChannelPages } from './channels.ts';
import { addPricePages } from './charges.ts';
import { addCodePages } from './codes.ts';
import { addCustomerForms } from './customer-forms.ts';
import { addCustomerPages } from './customers.ts';
import { addFindPages } from './find.ts';
import { addHistoryPages } from './history.ts';
import { addInvoicePages } from './invoice.ts';
import { addKeyPages } from './keys.ts';
import { addOverviewPages } from './overview.ts';
import { addUndoPages } from './outcome.ts';
import { addMarginPages } from './margins.ts';
import { addRequestPages } from './request-page.ts';
import { addRequestListPages } from './requests.ts';
import { addPriceImport } from './price-import.ts';
import { addSelectionPages } from './selection.ts';
import { addSettingPages } from './settings.ts';
import { addStatementPages } from './statements.ts';
import { addVersionPages } from './versions.ts';

export const pages: readonly ((routes: Routes) => void)[] = [
  addOverviewPages,
  addCustomerPages,
  addCustomerForms,
  addCodePages,
  addKeyPages,
  addChannelPages,
  addChannelForms,
  addInvoicePages,
  addPricePages,
  addSettingPages,
  addBulkPages,
  addSelectionPages,
  addPriceImport,
  addRequestListPages,
  addRequestPages,
  addStatementPages,
  addMarginPages,
  addVersionPages,
  addHistoryPages,
  addAuditPages,
  addUndoPages,
  addFindPages,
];
