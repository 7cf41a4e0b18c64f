// The layer that the reader has chosen: in a network, at a point of a curve, or in a sentence.

import type { Scores } from './data';
import { button } from './dom';
import type { State } from './state';

export interface Chosen {
  model: string;
  layer: string;
}

const listeners = new Set<() => void>();

/** Calls listener whenever the chosen layer changes, until the returned function is called. */
export function onLayer(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function layerOf(state: State): Chosen | undefined {
  const layer = state.get('layer.name');
  return layer === '' ? undefined : { model: state.get('layer.model'), layer };
}

/** Chooses a layer, or none if it is the chosen layer already. */
export function toggleLayer(state: State, scores: Scores, { model, layer }: Chosen): void {
  const now = layerOf(state);
  const again = now?.layer === layer && now.model === model;
  chooseLayer(state, scores, again ? undefined : { model, layer });
}

/** Replaces the names of layers in sentences by buttons that choose these layers. */
export class LayerButtons {
  private readonly marks: (() => void)[] = []; // for each button: shows whether its layer is chosen

  constructor(state: State, scores: Scores) {
    for (const name of document.querySelectorAll<HTMLElement>('.name[data-layer]')) {
      const { model = '', layer = '' } = name.dataset;
      const act = () => toggleLayer(state, scores, { model, layer });
      const made = button(act, { class: 'name', title: name.title }, ...name.childNodes);
      name.replaceWith(made);
      this.marks.push(() => {
        const now = layerOf(state);
        made.setAttribute('aria-pressed', String(now?.layer === layer && now.model === model));
      });
    }
    onLayer(() => this.update());
  }

  update(): void {
    for (const mark of this.marks) mark();
  }
}

/**
 * Chooses a layer, or none. Each section of a measure of layers switches to it if it has its
 * scores. A section without them no longer shows the layer that was chosen before.
 */
export function chooseLayer(state: State, scores: Scores, chosen?: Chosen): void {
  const before = layerOf(state);
  state.set('layer.model', chosen?.model ?? '');
  state.set('layer.name', chosen?.layer ?? '');
  for (const { key, layered } of scores.measures) {
    if (!layered) continue;
    const rows = scores.bySection().get(key) ?? [];
    if (chosen && rows.some((row) => scores.text('layer', row) === chosen.layer))
      state.set(`${key}.layer`, chosen.layer);
    else if (before && state.get(`${key}.layer`) === before.layer) state.set(`${key}.layer`, '');
  }
  for (const listener of listeners) listener();
}
