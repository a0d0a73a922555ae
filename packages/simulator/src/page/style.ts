// Look of the page, light and dark, and the one thing that moves on it: the tip at the pointer.

export const STYLE = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1d2430; --soft: #5d6878; --line: #dfe4ea;
  --staging: #9db7dc; --lane: #3f78c5; --returned: #d65a42; --cleanup: #f3e3b3; --bar: #3f78c5; --reference: #d65a42;
  --normal: #3f78c5; --other: #8a6fc0; --tail-cleanup: #d99a2b; --padding: #c9d1dc; --idle: #e6eaef; --gate: #2f8f5b }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1a2029; --ink: #e6eaf0; --soft: #98a4b5; --line: #2c3541;
  --staging: #37527a; --lane: #5b94e0; --returned: #e0745e; --cleanup: #4a3f1e; --bar: #5b94e0; --reference: #f08a70;
  --normal: #5b94e0; --other: #a98fdc; --tail-cleanup: #e0a83e; --padding: #445062; --idle: #262e39; --gate: #57c48a } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif }
main { max-width: 1060px; margin: 0 auto; padding: 24px 16px 48px }
h1 { font-size: 24px; margin: 0 } h2 { font-size: 16px; margin: 0 0 4px }
header p { margin: 2px 0 18px; color: var(--soft) } code { font-size: 0.95em }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px 8px; margin: 14px 0 }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 14px } .two section { margin: 0 }
.tiles { display: grid; grid-template-columns: repeat(6, 1fr); gap: 10px }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; display: flex; flex-direction: column }
.tile b { font-size: 20px; font-weight: 650; font-variant-numeric: tabular-nums } .tile span { color: var(--ink) } .tile small { color: var(--soft) }
@media (max-width: 800px) { .two { grid-template-columns: 1fr } .tiles { grid-template-columns: repeat(2, 1fr) } }
svg { display: block; width: 100%; height: auto } svg text { fill: var(--soft); font-size: 11.5px; font-family: inherit; font-variant-numeric: tabular-nums }
svg .label { fill: var(--ink) } .axis { stroke: var(--soft); stroke-width: 1 } .grid { stroke: var(--line); stroke-width: 1 }
polygon.staging { fill: var(--staging) } polygon.lane { fill: var(--lane) } polygon.returned { fill: var(--returned) }
rect.cleanup { fill: var(--cleanup) } rect.bar { fill: var(--bar) } rect.idle { fill: var(--idle) } rect.padding { fill: var(--padding) }
rect.hover { fill: transparent } rect.hover:hover { fill: var(--ink); fill-opacity: 0.12 } rect.broken { stroke: var(--returned); stroke-width: 1.5 }
rect.tail-normal { fill: var(--normal) } rect.tail-cleanup { fill: var(--tail-cleanup) } rect.tail-other { fill: var(--other) }
polyline.reference { fill: none; stroke: var(--reference); stroke-width: 1.6 }
line.gate { stroke: var(--gate); stroke-width: 1.5; stroke-dasharray: 4 3 } svg .gate-label { fill: var(--gate); font-weight: 600 }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; color: var(--soft); font-size: 13px; min-height: 20px; margin-bottom: 4px }
.legend span { display: inline-flex; align-items: center; gap: 6px } .legend i { width: 12px; height: 12px; border-radius: 3px; display: inline-block }
i.staging { background: var(--staging) } i.lane { background: var(--lane) } i.returned { background: var(--returned) } i.cleanup { background: var(--cleanup) }
i.bar { background: var(--bar) } i.reference { background: none; border-top: 2px solid var(--reference); border-radius: 0; height: 0 !important } i.idle { background: var(--idle) }
i.tail-normal { background: var(--normal) } i.tail-cleanup { background: var(--tail-cleanup) } i.tail-other { background: var(--other) } i.padding { background: var(--padding) }
table { border-collapse: collapse; width: 100%; margin-bottom: 8px } th { text-align: left; font-weight: 500; color: var(--soft); width: 230px; vertical-align: top }
td, th { padding: 4px 8px 4px 0; border-top: 1px solid var(--line) } tr:first-child > * { border-top: 0 } td { font-variant-numeric: tabular-nums }
#tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--page); padding: 4px 8px; border-radius: 5px; font-size: 13px; max-width: 420px; z-index: 1 }
`

export const SCRIPT = `
const tip = document.getElementById('tip')
addEventListener('pointermove', ({ target, clientX, clientY }) => {
  const text = target.closest?.('[data-tip]')?.dataset.tip
  tip.hidden = text == null
  if (tip.hidden) return
  tip.textContent = text
  const left = Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8)
  tip.style.left = left + 'px'
  tip.style.top = (clientY + 44 > innerHeight ? clientY - tip.offsetHeight - 10 : clientY + 14) + 'px'
})
`
