// Layout of a graph in columns, from left to right, and rows, which are called lanes. Its nodes are
// items, drawn as boxes. An item is in a column to the right of all items that it reads. A longest
// path lies in lane 0, at the bottom; branches, and lines that pass by boxes, have lanes above.

/** A box of the graph. */
export interface Item {
  reads: number[]; // indices of the items whose outputs it reads, all earlier in the list
  width: number;
  height: number;
}

/** A line from an item to one that reads it. */
export interface Edge {
  from: number; // index of the item
  to: number;
  path: string; // the attribute d of an SVG path
}

export interface Layout {
  width: number;
  height: number;
  centers: [number, number][]; // x and y of the items, in pixels from the top left
  edges: Edge[];
}

const maxLanes = 16; // a line for which no lane is free lies over others, in one more lane
const lineLaneHeight = 9; // pixels, of a lane that holds lines only

/** Lays out items, with gaps of the width across between columns, the height up between lanes. */
export function layout(items: Item[], across: number, up: number): Layout {
  const column = columns(items);
  const lanes = new Lanes();
  const lane = placeItems(items, column, lanes);
  const edges = items
    .flatMap(({ reads }, to) => reads.map((from) => ({ from, to, span: column[to] - column[from] })))
    .sort((a, b) => a.span - b.span);
  // The lane of the line of each edge. Short edges come first and so get the lower lanes.
  const routes = edges.map((e) =>
    e.span > 1 ? lanes.free(column[e.from] + 1, column[e.to] - 1, e.from) : lane[e.from],
  );

  const widths: number[] = [],
    heights: number[] = [];
  items.forEach((item, i) => {
    widths[column[i]] = Math.max(widths[column[i]] ?? 0, item.width);
    heights[lane[i]] = Math.max(heights[lane[i]] ?? 0, item.height);
  });
  for (let l = 0; l < Math.max(heights.length, ...routes.map((r) => r + 1)); l++)
    heights[l] = Math.max(heights[l] ?? 0, lineLaneHeight);
  const lefts: number[] = [];
  let width = 0;
  for (const w of widths) {
    lefts.push(width);
    width += w + across;
  }
  const height = heights.reduce((sum, h) => sum + h + up, -up);
  const middles: number[] = [];
  let y = height;
  for (const h of heights) {
    middles.push(y - h / 2);
    y -= h + up;
  }
  const centers = items.map((_, i): [number, number] => [
    lefts[column[i]] + widths[column[i]] / 2,
    middles[lane[i]],
  ]);
  return {
    width: Math.max(0, width - across),
    height,
    centers,
    edges: edges.map(({ from, to, span }, i) => {
      const start: [number, number] = [centers[from][0] + items[from].width / 2, centers[from][1]],
        end: [number, number] = [centers[to][0] - items[to].width / 2, centers[to][1]];
      if (span <= 1) return { from, to, path: `M${at(start)}${curve(start, end)}` };
      const first: [number, number] = [lefts[column[from] + 1], middles[routes[i]]],
        last: [number, number] = [lefts[column[to]] - across, middles[routes[i]]];
      const path = `M${at(start)}${curve(start, first)}L${at(last)}${curve(last, end)}`;
      return { from, to, path };
    }),
  };
}

// columns returns the column of each item: the length of the longest path to it.
function columns(items: Item[]): number[] {
  const out: number[] = [];
  for (const { reads } of items) out.push(reads.reduce((most, r) => Math.max(most, out[r] + 1), 0));
  return out;
}

// placeItems returns the lane of each item: 0 on one of the longest paths, else the lane of the
// first item that it reads, or the lowest free one above lane 0.
function placeItems(items: Item[], column: number[], lanes: Lanes): number[] {
  const lane: number[] = [];
  let i = column.indexOf(Math.max(...column));
  while (i >= 0) {
    lane[i] = 0;
    lanes.take(column[i], 0, -1);
    i = items[i].reads.find((r) => column[r] === column[i] - 1) ?? -1;
  }
  items.forEach((item, k) => {
    if (lane[k] === 0) return;
    const near = lane[item.reads[0]] ?? 0;
    lane[k] = near > 0 && lanes.isFree(column[k], near, -1) ? near : 1;
    while (!lanes.isFree(column[k], lane[k], -1)) lane[k]++;
    lanes.take(column[k], lane[k], -1);
  });
  return lane;
}

/** What occupies each lane of each column: a box (-1), or the lines from the item of this index. */
class Lanes {
  private readonly taken = new Map<string, number>();

  take(column: number, lane: number, by: number): void {
    this.taken.set(`${column} ${lane}`, by);
  }

  isFree(column: number, lane: number, by: number): boolean {
    const taken = this.taken.get(`${column} ${lane}`);
    return taken === undefined || (by >= 0 && taken === by);
  }

  /** Takes the lowest lane that is free in columns first to last, for lines from an item. */
  free(first: number, last: number, from: number): number {
    for (let lane = 0; lane < maxLanes; lane++) {
      let free = true;
      for (let c = first; c <= last && free; c++) free = this.isFree(c, lane, from);
      if (!free) continue;
      for (let c = first; c <= last; c++) this.take(c, lane, from);
      return lane;
    }
    return maxLanes;
  }
}

// at formats a point of an SVG path.
const at = ([x, y]: [number, number]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// curve returns a piece of an SVG path that leaves and arrives horizontally.
function curve(from: [number, number], to: [number, number]): string {
  if (from[1] === to[1]) return `L${at(to)}`;
  const middle = (from[0] + to[0]) / 2;
  return `C${at([middle, from[1]])} ${at([middle, to[1]])} ${at(to)}`;
}
