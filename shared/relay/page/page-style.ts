/** The page's style sheet. The content security policy allows it only by its hash: change both together. */

export const pageStyle = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5a636b; --line: #d9dee3; --back: #fff; --panel: #f4f6f8; --mark: #0b62c4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #9aa4ad; --line: #333a41; --back: #14171a; --panel: #1d2125; --mark: #7ab7ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
h1 { margin: 0 0 .5rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.25rem; }
h3 { margin: 1.25rem 0 .4rem; font-size: 1rem; }
p { margin: 0 0 .75rem; }
a { color: var(--mark); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .9em; }
pre { margin: 0; padding: .9rem 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; line-height: 1.45; }
.base { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; padding: .8rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
.base span { color: var(--soft); }
.base code { overflow-wrap: anywhere; font-weight: 600; }
.notice { padding: .8rem 1rem; border-left: 4px solid #d9822b; background: var(--panel); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .5rem .75rem .5rem 0; text-align: left; vertical-align: baseline; border-bottom: 1px solid var(--line); font-weight: normal; }
thead th { color: var(--soft); font-size: .9em; }
tbody code { overflow-wrap: anywhere; }
.plans { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 1rem; }
.plan { padding: .9rem 1rem; border: 1px solid var(--line); border-radius: 8px; overflow-wrap: anywhere; }
.plan h3 { margin-top: 0; }
.plan ul { margin: 0; padding-left: 1.1rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem; }
`;

export const pageStyleHash = 'sha256-Xh1yJ6CZN1hrnjc02vbNh7Rsv7UWWWjhQkUQrXGX3rc=';
