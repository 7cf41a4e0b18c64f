// The legend of charts: a button for each series. A click shows or hides the series in the whole
// report. Where there are more series than colours ("crowded"), it highlights the series instead.

import { button, element } from './dom';
import type { Filter } from './filters';
import { shorten } from './format';
import { swatch } from './palette';
import type { Series } from './series';

export class Legend {
  readonly root = element('ul');

  constructor(
    private readonly filter: Filter,
    private readonly changed: () => void,
    private readonly highlight: (dimension: string, value: string) => void,
  ) {}

  /** Lists the series that occur in the chart, hidden ones too, and then a note. */
  update(series: Series, present: Set<string>, note = ''): void {
    const hidden = this.filter.hidden(series.dimension);
    const items = series.values
      .filter((v) => present.has(v) && (series.dimension !== 'parameter' || v !== ''))
      .map((value) => {
        const on = series.crowded ? value === series.highlight : !hidden.has(value);
        const choose = () => {
          const place = [...this.root.querySelectorAll('button')].indexOf(item);
          if (series.crowded) this.highlight(series.dimension, value);
          else this.filter.hide(series.dimension, value, on);
          this.changed();
          this.root.querySelectorAll('button')[place]?.focus();
        };
        const name = element('span', {}, shorten(series.label(value), 40));
        const item = button(choose, { 'aria-pressed': String(on) }, swatch(series.look(value)), name);
        return element('li', {}, item);
      });
    if (series.crowded)
      items.unshift(
        element('li', { class: 'aside' }, `${items.length} series; choose the one to highlight:`),
      );
    this.root.classList.toggle('crowded', series.crowded);
    if (note) items.push(element('li', { class: 'aside' }, note));
    this.root.replaceChildren(...items);
  }
}
