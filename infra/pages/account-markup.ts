/** The markup of the account's page. It holds no data: the script fetches all with the customer's key. */
import { headOf } from '../../shared/relay/page/page-markup.ts';

/** Taken out where the page of models is off. */
export const modelsLink = '<a href="/">Models and prices</a>';

export const accountHtml = ({ style, script }: { style: string; script: string }): string =>
  `${headOf('Your account', style)}
<header class="top"><span class="brand" id="host">Your account</span><nav aria-label="Page">${modelsLink}</nav></header>
<main>
<h1>Your account</h1>
<noscript><p>This page needs JavaScript. Without it, <code>GET /v1/account</code> and <code>GET /v1/account/usage</code> answer the same with your key.</p></noscript>
${signMarkup}
<div id="open" hidden>
<p class="bar"><span>Key <code id="hint"></code></span> <button type="button" id="refresh">Refresh</button> <button type="button" id="leave">Forget the key</button> <span id="open-state" role="status"></span></p>
<ul class="notices" id="notices" aria-label="Notices" hidden></ul>
<dl class="cards" id="figures"></dl>
<nav class="families" aria-label="Parts of your account"><a href="#usage">Usage</a><a href="#try">Try a model</a><a href="#ledger">Calls and top-ups</a><a href="#key-limits">This key</a></nav>
<section id="plan" hidden><h2>Plan</h2><div id="plan-parts"></div></section>
<section id="changes" hidden><h2>Announced prices</h2><ul class="plain" id="changes-parts"></ul></section>
${usageMarkup}
${tryMarkup}
${ledgerMarkup}
<section id="errors" hidden><h2>Refused and failed calls</h2><p class="soft">Of the last 24 hours, by hour.</p><table><thead><tr><th scope="col">Hour<th scope="col">Code<th scope="col">Calls</thead><tbody id="errors-parts"></tbody></table></section>
<section id="key-limits"><h2>This key</h2><dl class="facts" id="key-limits-parts"></dl></section>
</div>
</main>
<script>${script}</script>
`;

const signMarkup = `<section id="sign" hidden>
<p class="lead">Balance, usage and a playground for your key.</p>
<form id="sign-form" class="card">
<label for="key">Key</label>
<input id="key" type="password" placeholder="sk-..." autocomplete="off" autocapitalize="off" spellcheck="false" required>
<label class="check"><input id="keep" type="checkbox"> Keep it until this tab is closed</label>
<button class="main">Open</button> <span id="sign-state" role="status"></span>
</form>
<p class="soft after">The key is sent to this relay alone, as the header <code>Authorization</code>. Unless you keep it, it is gone when you leave this page.</p>
</section>`;

const tryMarkup = `<section id="try"><h2>Try a model</h2>
<div id="turns" aria-live="polite"></div>
<form id="ask">
<label for="model">Model</label><input id="model" list="names" autocomplete="off" spellcheck="false"><datalist id="names"></datalist>
<label for="prompt">Message</label><textarea id="prompt" rows="3" dir="auto" placeholder="Enter sends, Shift+Enter begins a new line; pictures can be pasted"></textarea>
<div id="pictures"></div>
<details><summary>System prompt, tools</summary><div class="inner"><label for="system">System prompt</label><textarea id="system" rows="2" dir="auto"></textarea>
<label for="tools">Tools (a JSON list)</label><textarea id="tools" class="mono" rows="4" spellcheck="false" placeholder='[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]'></textarea></div></details>
<p class="bar"><button class="main" id="send">Send</button> <button type="button" id="stop" hidden>Stop</button> <label class="button">Add a picture <input id="files" type="file" accept="image/png,image/jpeg,image/webp,image/gif" multiple></label> <button type="button" id="clear">New conversation</button> <span id="ask-state" role="status"></span></p>
</form></section>`;

const usageMarkup = `<section id="usage"><h2>Usage</h2>
<p class="bar"><label>Days <select id="days"><option>7<option selected>14<option>30</select></label> <label>Show <select id="measure"><option value="charge">charges<option value="calls">calls<option value="tokens">tokens</select></label> <span id="usage-state" role="status"></span> <span class="soft">Days are those of UTC.</span></p>
<div id="plot"></div>
<div class="wide" tabindex="0" role="region" aria-label="Usage by model"><table class="numbers"><thead><tr><th scope="col">Model<th scope="col">Charges<th scope="col">Calls<th scope="col">Tokens in<th scope="col">Tokens out</thead><tbody id="by-model"></tbody></table></div></section>`;

const ledgerMarkup = `<section id="ledger"><h2>Calls and top-ups</h2>
<p class="bar"><button type="button" id="newer" disabled>Newer</button> <button type="button" id="older" disabled>Older</button> <span id="ledger-state" role="status"></span> <button type="button" id="save">Download CSV</button> <span id="save-state" role="status"></span></p>
<div class="wide" tabindex="0" role="region" aria-label="Calls and top-ups"><table class="rows"><thead><tr><th scope="col">Time<th scope="col">Model<th scope="col">Tokens<th scope="col">First content<th scope="col">End<th scope="col">Charge<th scope="col">Id</thead><tbody id="rows"></tbody></table></div></section>`;
