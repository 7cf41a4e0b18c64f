'use strict';
// The list narrows down while one types, and runs that are going on say how far they are.

const search = document.querySelector('#q');
const rows = [...document.querySelectorAll('table.runs tbody tr')];
search?.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((w) => row.textContent.toLowerCase().includes(w));
});

function show(progress) {
  for (const state of document.querySelectorAll(`[data-run="${CSS.escape(progress.run)}"]`)) {
    state.className = `state ${progress.state}`;
    const bar = state.querySelector('progress');
    bar.max = Math.max(1, progress.cells);
    bar.value = progress.done;
    const failed = progress.failed ? `, ${progress.failed} failed` : '';
    state.querySelector('.said').textContent = `${progress.state}, ${progress.done} of ${progress.cells} cells${failed}`;
  }
}

if ('live' in document.body.dataset) {
  const runs = [...document.querySelectorAll('.state.running')].map((s) => `run=${encodeURIComponent(s.dataset.run)}`);
  const stream = new EventSource(`/api/v1/events?${runs.join('&')}`);
  stream.addEventListener('progress', (e) => show(JSON.parse(e.data)));
  stream.addEventListener('end', () => { stream.close(); location.reload(); });
}
