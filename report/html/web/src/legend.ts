// The legend of a measure's charts: an entry for each series, which a press shows or hides in the
// whole report.

import { bars } from './charts/bars';
import type { Context, Kind } from './charts/kind';
import { element } from './dom';
import type { Filter } from './filters';
import { shorten } from './format';
import { swatch } from './palette';

export class Legend {
  readonly root = element('ul');

  constructor(
    private readonly filter: Filter,
    private readonly changed: () => void,
  ) {}

  /** Lists the series among all rows, whether they are hidden or not. */
  update(c: Context, all: number[], kind: Kind): void {
    const { series } = c;
    if (kind.legend === 'none') {
      this.root.replaceChildren(); // heat maps have no lines
      return;
    }
    const present = new Set(all.map((row) => series.of(row)));
    const hidden = this.filter.hidden(series.dimension);
    const items = series.values
      .filter((v) => present.has(v) && (series.dimension !== 'parameter' || v !== ''))
      .map((value) => {
        const on = !hidden.has(value);
        const button = element(
          'button',
          { type: 'button', 'aria-pressed': String(on) },
          swatch(series.look(value)),
          element('span', {}, shorten(series.label(value), 40)),
        );
        button.addEventListener('click', () => {
          const place = [...this.root.querySelectorAll('button')].indexOf(button);
          this.filter.hide(series.dimension, value, on);
          this.changed();
          this.root.querySelectorAll('button')[place]?.focus();
        });
        return element('li', {}, button);
      });
    if (kind.legend === 'null' && all.some((row) => c.scores.number('null', row) !== null))
      items.push(
        element(
          'li',
          { class: 'aside' },
          kind === bars
            ? 'a tick alone: the null, what chance gives'
            : 'dotted: the null, what chance gives',
        ),
      );
    this.root.replaceChildren(...items);
  }
}
