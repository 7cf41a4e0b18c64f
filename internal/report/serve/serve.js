'use strict';
// The list of runs is filtered while the user types. The page shows the progress of unfinished
// runs, and is refreshed as their scores are written. A run is divided into cells: a cell has the
// scores of one measure for one model, data set and transformation. A page of an unfinished run has
// data-live.

const search = document.querySelector('#q');
const rows = [...document.querySelectorAll('table.runs tbody tr')];
search?.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((w) => row.textContent.toLowerCase().includes(w));
});

// timeLeft describes the time left; it must agree with Progress.Remaining in library.go.
function timeLeft(seconds) {
  if (seconds < 120) return `about ${seconds} s left`;
  if (seconds < 7200) return `about ${Math.round(seconds / 60)} min left`;
  return `about ${Math.round(seconds / 3600)} h left`;
}

// show writes a run's progress into the elements that show it. progress is a Progress of
// library.go.
function show(progress) {
  for (const state of document.querySelectorAll(`[data-run="${CSS.escape(progress.run)}"]`)) {
    state.className = `state ${progress.state}`;
    const bar = state.querySelector('progress');
    const percent = Math.floor(100 * progress.share);
    bar.value = percent;
    const parts = [progress.state, `${progress.done} of ${progress.cells} cells`];
    if (progress.failed) parts.push(`${progress.failed} failed`);
    if (progress.state === 'running') parts.push(`${percent} %`);
    if (progress.state === 'running' && progress.left) parts.push(timeLeft(progress.left));
    state.querySelector('.progress-text').textContent = parts.join(', ');
  }
}

// refresh replaces the parts of the page that show scores (data-follow), except one with the focus.
async function refresh() {
  const answer = await fetch(location.href).catch(() => undefined);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const part of document.querySelectorAll('[data-follow]')) {
    const updated = page.querySelector(`[data-follow="${part.dataset.follow}"]`);
    if (updated && !part.contains(document.activeElement) && updated.innerHTML !== part.innerHTML) part.replaceWith(updated);
  }
}

const pause = 1000; // milliseconds between two refreshes, at least
const done = new Map(); // number of finished cells by run, from the last event
let timer = 0; // identifier of the timer of the next refresh; 0: none

// follow refreshes the scores when a run has finished a cell.
function follow(progress) {
  const before = done.get(progress.run);
  done.set(progress.run, progress.done);
  if (before === undefined || before === progress.done || timer) return;
  timer = setTimeout(() => {
    timer = 0;
    void refresh();
  }, pause);
}

if ('live' in document.body.dataset) {
  const runs = [...document.querySelectorAll('.state.running')].map((s) => `run=${encodeURIComponent(s.dataset.run)}`);
  const stream = new EventSource(`/api/v1/events?${runs.join('&')}`);
  stream.addEventListener('progress', (e) => {
    const progress = JSON.parse(e.data);
    show(progress);
    follow(progress);
  });
  stream.addEventListener('end', () => { stream.close(); location.reload(); });
}
