// The report comes as text with its scores as data; this draws the charts and the tables into it.

import './style.css';
import { Scores, type Packed } from './data';
import { Section } from './section';

async function main(): Promise<void> {
  const scores = new Scores(JSON.parse(document.getElementById('scores')!.textContent!) as Packed);
  const models = scores.values('model');
  const sections = [...document.querySelectorAll<HTMLElement>('section.measure')].map(
    (root) => new Section(root, scores, scores.measures[Number(root.dataset.measure)], models),
  );
  for (const section of sections) await section.draw();
  document.documentElement.dataset.drawn = 'true'; // for printing from a script, and for tests
}

void main();
