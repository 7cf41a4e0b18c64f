// Contact sheets (several samples side by side) and other images of a run folder, with captions.

import type { ContactSheet, Scores } from './data';
import { element } from './dom';
import type { Filter } from './filters';

export class Images {
  constructor(
    private readonly root: HTMLElement,
    private readonly scores: Scores,
    private readonly filter: Filter,
  ) {}

  update(): void {
    const shown = (this.scores.packed.pictures ?? []).filter((p) =>
      this.filter.passes({ model: p.model }),
    );
    this.root
      .querySelector('.sheets')!
      .replaceChildren(
        ...shown.map(sheet),
        ...(shown.length === 0
          ? [element('p', { class: 'none' }, this.scores.packed.notices.images)]
          : []),
      );
  }
}

function sheet(p: ContactSheet): HTMLElement {
  const image = element('img', {
    src: `data:image/png;base64,${p.png}`,
    alt: p.alt,
    width: String(p.width),
    height: String(p.height),
    loading: 'lazy',
    decoding: 'async',
  });
  const about = [p.model, p.measure].filter(Boolean).join(', ');
  return element(
    'figure',
    { class: 'sheet' },
    element('figcaption', {}, element('span', {}, p.title)),
    image,
    ...(p.caption ? [element('p', { class: 'sentences' }, p.caption)] : []),
    ...(about ? [element('p', { class: 'sentences' }, about)] : []),
  );
}
