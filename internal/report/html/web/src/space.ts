// The representation space of a layer: a scatter plot of samples, clean and transformed, in the
// plane of the first two principal components.

import { conditionOf, onChosenValue, placeOf, sheetsShown, slider, validOrFirst } from './chosenvalue';
import { Part } from './controls';
import type { SampleSheet, Scores } from './data';
import { Figure } from './figure';
import type { Filter } from './filters';
import { layerOf, onLayer } from './layer';
import { sized } from './marks';
import { colourOf } from './palette';
import { labelOf } from './series';
import type { State } from './state';
import { tableOf, textsOf, type Field } from './table';

const maxColours = 8; // points of more classes than this are grey

export class Space extends Part {
  private readonly sheets: SampleSheet[];

  constructor(root: HTMLElement, scores: Scores, state: State, filter: Filter) {
    super(root, scores, state, filter, 'space');
    this.sheets = (scores.packed.sheets ?? []).filter((s) => (s.projections ?? []).length > 0);
    this.folds(root.querySelector('details')!, ['data', 'transform', 'model', 'layer']);
    onChosenValue(() => this.draw());
    onLayer(() => {
      const at = layerOf(state);
      if (!at || !this.sheets.some((s) => s.projections!.some((p) => p.model === at.model && p.layer === at.layer))) return;
      state.set('space.model', at.model);
      state.set('space.layer', at.layer);
      this.update();
    });
  }

  // chosen returns what is shown. It is the reader's choice if that passes the filters; otherwise
  // the first data set, transformation and model that do, and the deepest layer.
  private chosen() {
    const { data, ofData } = sheetsShown(this.sheets, this.filter, this.asked('data'));
    const sheet = ofData.find((s) => s.transform === this.asked('transform')) ?? ofData[0];
    const all = (sheet?.projections ?? []).filter((p) => this.filter.passes({ model: p.model }));
    const models = [...new Set(all.map((p) => p.model))];
    const model = validOrFirst(models, this.asked('model'));
    const layers = all.filter((p) => p.model === model);
    const at = layers.find((p) => p.layer === this.asked('layer')) ?? layers[layers.length - 1];
    return { data, ofData, sheet, models, layers, at };
  }

  update(): void {
    const { data, ofData, sheet, models, layers, at } = this.chosen();
    this.root.hidden = this.sheets.length === 0;
    if (!at) return this.showNothing(this.scores.packed.notices.hidden);
    if (!this.root.querySelector('details')!.open) return;
    this.part('controls').replaceChildren(
      ...this.list('data', 'Data', data, sheet.data),
      ...this.list('transform', 'Transformation', ofData.map((s) => s.transform), sheet.transform),
      ...this.list('model', 'Model', models, at.model),
      ...this.list(
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
      transformed = conditionOf(sheet, k);
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
    const fields: Field<PlanePoint>[] = [
      ['sample', (p) => p.sample],
      ['class', (p) => p.class],
      ['input', (p) => p.side],
      ['first component', (p) => p.x],
      ['second component', (p) => p.y],
    ];
    const figure = new Figure({
      title,
      description: title,
      wide: true,
      build: () => ({
        spec: plane(points, [...new Set(names)], this.scores),
        text: `A ring is a sample as it is, a dot the same under ${transformed}; a line joins them. Short lines: the layer is invariant. The components are those of these ${samples.length} samples, pooled over positions.`,
      }),
      describe: (id) => textsOf(fields, points[id]),
      data: () => tableOf(`Data of the chart: ${title}`, points, fields),
    });
    this.show([figure]);
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
