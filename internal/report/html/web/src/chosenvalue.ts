// The value of a transformation's parameter that the reader has chosen, such as an angle. Images,
// predictions and the markers in charts over the parameter show it.

import type { SampleSheet, Scores } from './data';
import { element } from './dom';
import type { Filter } from './filters';
import { shorten } from './format';
import type { State } from './state';

type Listener = (transform: string, value: string) => void;

const listeners = new Set<Listener>();

/** Registers a callback for the choice of a value. The returned function removes it. */
export function onChosenValue(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The chosen value of a transformation; '' if none is. */
export function chosenValue(state: State, transform: string): string {
  return state.get(`value.${transform}`);
}

function choose(state: State, transform: string, value: string): void {
  state.set(`value.${transform}`, value);
  for (const listener of listeners) listener(transform, value);
}

/**
 * The index of the chosen value among those of a sheet. Without a choice it is the value whose mean
 * change, by the statistic of the sheet and summed over models, is largest. sheet.lower: a lower
 * value of it means a larger change.
 */
export function placeOf(state: State, sheet: SampleSheet): number {
  const chosen = sheet.parameters.indexOf(chosenValue(state, sheet.transform));
  if (chosen >= 0) return chosen;
  const change = sheet.parameters.map((_, k) =>
    sheet.models.reduce((sum, m) => sum + (sheet.lower ? -1 : 1) * m.views[k].mean, 0),
  );
  return change.indexOf(Math.max(...change));
}

/** The transformation of a sheet with the value of an index, such as "rotate 90". */
export const conditionOf = ({ transform, parameters }: SampleSheet, k: number) =>
  [transform, parameters[k]].filter(Boolean).join(' ');

/** A value if it is one of some, else the first of them. */
export const validOrFirst = (all: string[], value: string) => (all.includes(value) ? value : all[0]);

/** The data sets of the sheets that pass the filters, and the sheets of the chosen one, or the first. */
export function sheetsShown(sheets: SampleSheet[], filter: Filter, chosen: string) {
  const shown = sheets.filter((s) => filter.passes({ transform: s.transform, data: s.data }));
  const data = [...new Set(shown.map((s) => s.data))];
  return { data, ofData: shown.filter((s) => s.data === validOrFirst(data, chosen)) };
}

/** A slider over the values of a transformation; none for a single one. Moving it calls follow. */
export function slider(
  scores: Scores,
  state: State,
  sheet: SampleSheet,
  follow: () => void,
): HTMLElement[] {
  const { transform, parameters } = sheet;
  if (parameters.length < 2) return [];
  const input = element('input', {
    type: 'range',
    name: 'angle',
    min: '0',
    max: String(parameters.length - 1),
    step: '1',
  });
  const output = element('output');
  const showValue = () => {
    const value = parameters[Number(input.value)];
    output.textContent = shorten(value, 24);
    input.setAttribute('aria-valuetext', value);
  };
  input.value = String(placeOf(state, sheet));
  showValue();
  input.addEventListener('input', () => {
    showValue();
    choose(state, transform, parameters[Number(input.value)]);
    follow();
  });
  const title = scores.packed.transforms[transform] || `value of ${transform}`;
  return [element('label', { class: 'slider' }, element('span', { title }, shorten(title, 48)), input, output)];
}
