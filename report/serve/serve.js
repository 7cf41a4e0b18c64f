'use strict';
// The list narrows down while one types, and runs that are going on say how far they are.

const search = document.querySelector('#q');
const rows = [...document.querySelectorAll('table.runs tbody tr')];
search?.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((w) => row.textContent.toLowerCase().includes(w));
});

function left(seconds) {
  if (seconds < 120) return `about ${seconds} s left`;
  if (seconds < 7200) return `about ${Math.round(seconds / 60)} min left`;
  return `about ${Math.round(seconds / 3600)} h left`;
}

function show(progress) {
  for (const state of document.querySelectorAll(`[data-run="${CSS.escape(progress.run)}"]`)) {
    state.className = `state ${progress.state}`;
    const bar = state.querySelector('progress');
    const percent = Math.floor(100 * progress.share);
    bar.value = percent;
    const parts = [progress.state, `${progress.done} of ${progress.cells} cells`];
    if (progress.failed) parts.push(`${progress.failed} failed`);
    if (progress.state === 'running') parts.push(`${percent} %`);
    if (progress.state === 'running' && progress.left) parts.push(left(progress.left));
    state.querySelector('.said').textContent = parts.join(', ');
  }
}

if ('live' in document.body.dataset) {
  const runs = [...document.querySelectorAll('.state.running')].map((s) => `run=${encodeURIComponent(s.dataset.run)}`);
  const stream = new EventSource(`/api/v1/events?${runs.join('&')}`);
  stream.addEventListener('progress', (e) => show(JSON.parse(e.data)));
  stream.addEventListener('end', () => { stream.close(); location.reload(); });
}
