// The representation space of a layer: a scatter plot of samples, clean and transformed, in the
// plane of the first two principal components. A sheet holds the samples of one data set under one
// transformation; its projections hold their coordinates at a layer of a model.

import { onChosenValue, placeOf, slider } from './chosenvalue';
import { chooser } from './controls';
import type { SampleSheet, Scores } from './data';
import { Figure } from './figure';
import type { Filter } from './filters';
import { number, shorten } from './format';
import { layerOf, onLayer } from './layer';
import { sized } from './marks';
import { colourOf } from './palette';
import { labelOf } from './series';
import type { State } from './state';

const maxColours = 8; // points of more classes than this are grey

export class Space {
  private readonly sheets: SampleSheet[];
  private figure?: Figure;

  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly state: State,
    private readonly filter: Filter,
  ) {
    this.sheets = (scores.packed.sheets ?? []).filter((s) => (s.projections ?? []).length > 0);
    const folded = root.querySelector('details')!;
    folded.open = ['data', 'transform', 'model', 'layer'].some((k) => state.get(`space.${k}`) !== '');
    folded.addEventListener('toggle', () => this.update());
    onChosenValue(() => this.draw());
    onLayer(() => {
      const at = layerOf(state);
      if (!at || !this.sheets.some((s) => s.projections!.some((p) => p.model === at.model && p.layer === at.layer))) return;
      state.set('space.model', at.model);
      state.set('space.layer', at.layer);
      this.update();
    });
  }

  private part(name: string): HTMLElement {
    return this.root.querySelector<HTMLElement>(`.${name}`)!;
  }

  private choose(name: string, value: string): void {
    this.state.set(`space.${name}`, value);
    this.update();
    this.part('controls').querySelector<HTMLElement>(`select[name="space-${name}"]`)?.focus();
  }

  // chosen returns what is shown. It is the reader's choice if that passes the filters; otherwise
  // the first data set, transformation and model that do, and the deepest layer.
  private chosen() {
    const asked = (name: string) => this.state.get(`space.${name}`);
    const shown = this.sheets.filter((s) => this.filter.passes({ transform: s.transform, data: s.data }));
    const data = [...new Set(shown.map((s) => s.data))];
    const ofData = shown.filter((s) => s.data === (data.includes(asked('data')) ? asked('data') : data[0]));
    const sheet = ofData.find((s) => s.transform === asked('transform')) ?? ofData[0];
    const all = (sheet?.projections ?? []).filter((p) => this.filter.passes({ model: p.model }));
    const models = [...new Set(all.map((p) => p.model))];
    const model = models.includes(asked('model')) ? asked('model') : models[0];
    const layers = all.filter((p) => p.model === model);
    const at = layers.find((p) => p.layer === asked('layer')) ?? layers[layers.length - 1];
    return { data, ofData, sheet, models, layers, at };
  }

  update(): void {
    const { data, ofData, sheet, models, layers, at } = this.chosen();
    this.root.hidden = this.sheets.length === 0;
    if (!at) {
      this.figure?.remove();
      this.part('controls').replaceChildren();
      this.part('charts').replaceChildren(this.scores.packed.notices.hidden);
      return;
    }
    if (!this.root.querySelector('details')!.open) return;
    const list = (name: string, title: string, options: [string, string][], value: string) =>
      options.length > 1
        ? [
            chooser(
              title,
              `space-${name}`,
              options.map(([o, t]) => ({ value: o, title: shorten(t, 48) })),
              value,
              (v) => this.choose(name, v),
            ),
          ]
        : [];
    const same = (v: string): [string, string] => [v, v];
    this.part('controls').replaceChildren(
      ...list('data', 'Data', data.map(same), sheet.data),
      ...list('transform', 'Transformation', ofData.map((s) => same(s.transform)), sheet.transform),
      ...list('model', 'Model', models.map(same), at.model),
      ...list(
        'layer',
        'Layer',
        layers.map((p) => [p.layer, `${p.depth} ${labelOf(this.scores, 'layer', p.layer)}`]),
        at.layer,
      ),
      ...slider(this.scores, this.state, sheet, () => {}),
    );
    this.draw();
  }

  private draw(): void {
    const { sheet, at } = this.chosen();
    if (!at || !this.root.querySelector('details')!.open) return;
    const k = placeOf(this.state, sheet),
      view = at.views[k],
      transformed = [sheet.transform, sheet.parameters[k]].filter(Boolean).join(' ');
    const samples = sheet.projected!;
    const names = samples.map((s) => (s.label < 0 ? 'unknown' : sheet.classes![s.label]));
    const points = samples.flatMap((s, i) =>
      (['clean', 'moved'] as const).map((side, j) => ({
        id: 2 * i + j,
        pair: i,
        sample: s.name || String(s.index),
        class: names[i],
        side: side === 'clean' ? 'as it is' : `under ${transformed}`,
        x: view[side][i][0],
        y: view[side][i][1],
      })),
    );
    const layer = labelOf(this.scores, 'layer', at.layer);
    const title = `${at.model}, ${layer}: clean and under ${transformed}`;
    const columns: [string, (i: number) => string | number][] = [
      ['sample', (i) => points[i].sample],
      ['class', (i) => points[i].class],
      ['input', (i) => points[i].side],
      ['first component', (i) => points[i].x],
      ['second component', (i) => points[i].y],
    ];
    const cell = (v: string | number) => (typeof v === 'number' ? number(v) : v);
    this.figure?.remove();
    this.figure = new Figure({
      title,
      description: title,
      wide: true,
      build: () => ({
        spec: plane(points, [...new Set(names)], this.scores),
        text: `A ring is a sample as it is, a dot the same under ${transformed}; a line joins them. Short lines: the layer is invariant. The components are those of these ${samples.length} samples, pooled over positions.`,
      }),
      describe: (id) => columns.map(([name, get]) => [name, cell(get(id))]),
      data: () => ({
        title: `Data of the chart: ${title}`,
        rows: points.map((_, i) => i),
        columns: columns.map(([name, get]) => ({
          title: name,
          numeric: typeof get(0) === 'number',
          cell: (i) => cell(get(i)),
          key: get,
        })),
        csv: (rows) => [
          columns.map(([name]) => name),
          ...rows.map((i) => columns.map(([, get]) => get(i))),
        ],
      }),
    });
    this.part('charts').replaceChildren(this.figure.root);
  }
}

interface PlanePoint {
  id: number;
  pair: number; // index of the sample: a clean and a transformed point form a pair
  sample: string;
  class: string;
  side: string; // clean or transformed, in words
  x: number;
  y: number;
}

// plane returns the specification of the plot for Vega-Lite.
function plane(points: PlanePoint[], classes: string[], scores: Scores) {
  const { looks } = scores.packed;
  const coloured = classes.length <= maxColours;
  const color = {
    field: 'class',
    type: 'nominal',
    scale: {
      domain: classes,
      range: classes.map((_, i) => (coloured ? colourOf(looks[i]) : 'var(--muted)')),
    },
    legend: coloured && classes.length > 1 ? { orient: 'right', title: null } : null,
  };
  const x = { field: 'x', type: 'quantitative', title: 'first component', scale: { zero: false, padding: 12 }, axis: { tickCount: 5 } };
  const y = { ...x, field: 'y', title: 'second component' };
  const layer = [
    {
      mark: { type: 'line', strokeWidth: 1, opacity: 0.5 },
      encoding: { x, y, color, detail: { field: 'pair', type: 'nominal' } },
    },
    ...[false, true].map((filled) => ({
      transform: [{ filter: `(datum.side === 'as it is') === ${!filled}` }],
      mark: { type: 'point', filled, opacity: 0.9, strokeWidth: 1.5, size: 36 },
      encoding: { x, y, color, tooltip: { field: 'id', type: 'nominal' } },
    })),
  ];
  return sized({ data: { values: points }, height: 420, layer });
}
