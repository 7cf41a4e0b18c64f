// The report is a page of text with its scores as data. This script adds the charts and tables: it
// builds one object for each part of the page, and updates all parts when the filters change.

import './style.css';
import { Classes } from './classes';
import { Scores, type SampleSheet } from './data';
import { element } from './dom';
import { Filter, FilterBar } from './filters';
import { Glance } from './glance';
import { Images } from './images';
import { LayerButtons } from './layer';
import { FeatureMaps } from './maps';
import { Network } from './network';
import { queue } from './queue';
import { Relations } from './relations';
import { Samples } from './samples';
import { Section } from './section';
import { unzip } from './source';
import { Space } from './space';
import { State } from './state';

function build(scores: Scores): void {
  const state = new State();
  const filter = new Filter(scores, state);
  const rows = scores.bySection();
  const update = () => {
    bar.update();
    for (const part of parts) part.update();
  };
  const bar = new FilterBar(scores, state, filter, update);
  const parts: { update: () => void }[] = [
    ...document.querySelectorAll<HTMLElement>('section.measure'),
  ].map((root) => {
    const measure = scores.measures[Number(root.dataset.measure)];
    return new Section(root, scores, measure, rows.get(measure.key) ?? [], state, filter, update);
  });
  for (const root of document.querySelectorAll<HTMLDetailsElement>('details.maps')) {
    const { name } = scores.measures[Number(root.closest<HTMLElement>('section')!.dataset.measure)];
    parts.push(new FeatureMaps(root, scores, name, state, filter));
  }
  // showSamples goes to the section of samples, at the contact sheet of a transformation.
  const showSamples = (sheet: SampleSheet) => {
    state.set('samples.data', sheet.data);
    state.set('samples.transform', sheet.transform);
    state.set('samples.show', '');
    goTo(state, 'samples');
    update();
  };
  // Glance is the overview at the top of the report.
  const glance = document.querySelector<HTMLElement>('.glance');
  if (glance) parts.unshift(new Glance(glance, scores, state, filter, (key) => open(state, scores, key), showSamples));
  const sections: Record<string, (root: HTMLElement) => { update: () => void }> = {
    samples: (root) => new Samples(root, scores, state, filter),
    classes: (root) => new Classes(root, scores, state, filter),
    network: (root) => new Network(root, scores, state, filter),
    space: (root) => new Space(root, scores, state, filter),
    relations: (root) => new Relations(root, scores, state, filter, update),
    pictures: (root) => new Images(root, scores, filter),
  };
  for (const [id, make] of Object.entries(sections)) {
    const root = document.getElementById(id);
    if (root) parts.push(make(root));
  }
  parts.push(new LayerButtons(state, scores)); // names of layers in sentences become buttons
  document.getElementById('filters')?.replaceWith(bar.root);
  update();
  contents(state);
  state.onArrival(() => {
    update();
    arrive(state);
  });
  queue.settle(); // starts drawing the charts
  arrive(state);
  window.addEventListener('keydown', (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key === 'p' && !complete()) {
      e.preventDefault();
      void queue.all().then(() => window.print());
    }
  });
}

// complete reports whether all charts are drawn.
const complete = () => document.documentElement.dataset.complete === 'true';

// contents makes the links of the list of contents keep the reader's choices, and folds the list on
// narrow screens.
function contents(state: State): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a[href^="#"]')) {
    link.addEventListener('click', (e) => {
      e.preventDefault();
      goTo(state, link.hash.slice(1));
      if (narrow.matches) link.closest('details')!.open = false;
    });
  }
  const list = document.querySelector<HTMLDetailsElement>('nav.contents details');
  const fold = () => {
    if (list) list.open = !narrow.matches;
  };
  narrow.addEventListener('change', fold);
  fold();
  mark();
}

const narrow = window.matchMedia('(max-width: 70rem)'); // as in style.css

// mark shows in the list of contents which part is in view.
function mark(): void {
  const all = document.querySelectorAll<HTMLAnchorElement>('nav.contents a');
  const links = new Map([...all].map((a) => [a.hash.slice(1), a]));
  const seen = new Set<Element>();
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const e of entries)
        if (e.isIntersecting) seen.add(e.target);
        else seen.delete(e.target);
      const at = [...links.keys()].find((id) => seen.has(document.getElementById(id)!));
      for (const [id, link] of links)
        if (id === at) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
    },
    { rootMargin: '-20% 0px -60% 0px' },
  );
  for (const id of links.keys()) {
    const part = document.getElementById(id);
    if (part) watcher.observe(part);
  }
}

// open goes to the section of the measure with a key.
function open(state: State, scores: Scores, key: string): void {
  goTo(state, `measure-${scores.measures.findIndex((m) => m.key === key)}`);
}

// goTo scrolls to an element and focuses its heading. The address keeps the element's id as "at".
function goTo(state: State, id: string): void {
  const target = document.getElementById(id);
  if (!target) return;
  state.set('at', id);
  target.scrollIntoView();
  const heading = target.querySelector('h2');
  heading?.setAttribute('tabindex', '-1');
  heading?.focus({ preventScroll: true });
}

// arrive scrolls to the element that the address names.
function arrive(state: State): void {
  const id = state.get('at');
  if (id) document.getElementById(id)?.scrollIntoView();
}

async function main(): Promise<void> {
  const holder = document.getElementById('data')!;
  try {
    build(new Scores(await unzip(holder.textContent ?? '')));
  } catch (problem) {
    const text = problem instanceof Error ? problem.message : String(problem);
    const notice = `The charts cannot be drawn: ${text}. The numbers are in scores.csv, beside this report.`;
    document.getElementById('main')?.prepend(element('p', { class: 'notice', role: 'alert' }, notice));
    document.documentElement.dataset.drawn = document.documentElement.dataset.complete = 'true';
  }
}

void main();
