// The style of the status page: one file for light and dark, wide and narrow.

#include "server/web/pages/page_frame.hpp"

namespace quasi::server {
namespace {

constexpr char kStyle[] = R"css(:root {
  color-scheme: light dark;
  --page: #fbfbfa; --ink: #1d2125; --soft: #59626b; --line: #d5d9dd; --card: #ffffff;
  --accent: #1a5fb4; --good: #1c6b34; --bad: #a51d2d; --wait: #7a4f01;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181b; --ink: #e8eaec; --soft: #a4acb4; --line: #363b41; --card: #1e2125;
    --accent: #86b5f2; --good: #7bd092; --bad: #ff9b9b; --wait: #f0c36b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--page); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere;
}
a { color: var(--accent); }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
header, footer { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline; }
header { border-bottom: 1px solid var(--line); padding-bottom: .5rem; }
header p, footer p { margin: 0; color: var(--soft); }
footer {
  border-top: 1px solid var(--line); padding-top: .5rem; margin-top: 2rem; font-size: .875rem;
}
.brand { font-weight: 700; color: var(--ink); text-decoration: none; font-size: 1.125rem; }
h1 { font-size: 1.5rem; margin: 1.25rem 0 .5rem; }
h2 { font-size: 1.125rem; margin: 1.75rem 0 .5rem; }
.cards {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem;
  margin: 0;
}
.cards div {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .625rem .75rem;
}
.cards dt { color: var(--soft); font-size: .875rem; }
.cards dd { margin: 0; font-size: 1.375rem; font-variant-numeric: tabular-nums; }
.cards dd small { font-size: .875rem; color: var(--soft); }
.scroll {
  overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem;
}
table {
  border-collapse: collapse; width: 100%; font-size: .9375rem; overflow-wrap: break-word;
}
caption { text-align: left; padding: .5rem .75rem; color: var(--soft); font-size: .875rem; }
th, td {
  text-align: left; padding: .375rem .75rem; vertical-align: top;
  border-top: 1px solid var(--line);
}
thead th {
  color: var(--soft); font-weight: 600; font-size: .875rem; border-top: 0; white-space: nowrap;
}
tbody th { font-weight: 500; }
td { font-variant-numeric: tabular-nums; }
.number { text-align: right; white-space: nowrap; }
.id { font-family: ui-monospace, monospace; font-size: .875rem; white-space: nowrap; }
.state { white-space: nowrap; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .wait { color: var(--wait); }
.soft { color: var(--soft); }
.none { display: block; min-width: 6.5rem; font-size: .875rem; line-height: 1.5rem; }
.cards + .scroll { margin-top: .75rem; }
.alarm { border-left: .25rem solid var(--bad); padding: .5rem .75rem; background: var(--card); }
.spark { display: block; width: 7.5rem; height: 1.5rem; }
.spark polyline {
  fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke;
}
.spark line { stroke: var(--line); stroke-width: 1; }
.cards .spark { width: 100%; }
progress { width: 8rem; max-width: 100%; height: .75rem; accent-color: var(--accent); }
.wide progress { width: 100%; height: 1rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; }
pre {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem;
  overflow-x: auto; font: .8125rem/1.4 ui-monospace, monospace; white-space: pre-wrap;
}
@media (max-width: 40rem) {
  body { padding: .75rem; }
  .rare { display: none; }
  th, td { padding: .375rem .5rem; }
  dl.facts { grid-template-columns: 1fr; }
  dl.facts dd { margin-bottom: .5rem; }
}
)css";

}  // namespace

std::string style_sheet() { return kStyle; }

}  // namespace quasi::server
