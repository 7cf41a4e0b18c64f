// The report comes as text with its scores as data; this draws the charts and the tables into it.

import './style.css';
import { Scores } from './data';
import { element } from './dom';
import { Filter, FilterBar } from './filters';
import { Images } from './images';
import { queue } from './queue';
import { Relations } from './relations';
import { Section } from './section';
import { load } from './source';
import { State } from './state';

function build(scores: Scores): void {
  const state = new State();
  const filter = new Filter(scores, state);
  const rows = scores.byMeasure(scores.measures);
  const update = () => {
    bar.update();
    for (const part of parts) part.update();
  };
  const bar = new FilterBar(scores, state, filter, update);
  const parts: { update: () => void }[] = [
    ...document.querySelectorAll<HTMLElement>('section.measure'),
  ].map((root) => {
    const measure = scores.measures[Number(root.dataset.measure)];
    return new Section(root, scores, measure, rows.get(measure.name) ?? [], state, filter, update);
  });
  const relations = document.getElementById('relations'),
    pictures = document.getElementById('pictures');
  if (relations) parts.push(new Relations(relations, scores, state, filter, update));
  if (pictures) parts.push(new Images(pictures, scores, filter));
  document.getElementById('filters')?.replaceWith(bar.root);
  update();
  contents(state);
  state.onArrival(() => {
    update();
    arrive(state);
  });
  queue.settle();
  arrive(state);
}

// contents keeps what is chosen where a reader goes to a measure by the list of contents.
function contents(state: State): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>(
    'nav a[href^="#"], .findings a[href^="#"]',
  )) {
    link.addEventListener('click', (e) => {
      const target = document.querySelector(link.hash);
      if (!target) return;
      e.preventDefault();
      state.set('at', link.hash.slice(1));
      target.scrollIntoView();
      const heading = target.querySelector('h2');
      heading?.setAttribute('tabindex', '-1');
      heading?.focus({ preventScroll: true });
    });
  }
}

function arrive(state: State): void {
  const id = state.get('at');
  if (id) document.getElementById(id)?.scrollIntoView();
}

async function main(): Promise<void> {
  const holder = document.getElementById('data')!;
  try {
    build(new Scores(await load(holder)));
  } catch (problem) {
    const text = problem instanceof Error ? problem.message : String(problem);
    document
      .getElementById('main')
      ?.prepend(
        element(
          'p',
          { class: 'notice', role: 'alert' },
          `The charts cannot be drawn: ${text}. The numbers are in scores.csv, beside this report.`,
        ),
      );
    document.documentElement.dataset.drawn = document.documentElement.dataset.complete = 'true';
  }
}

void main();
