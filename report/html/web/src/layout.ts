// A graph laid out along its depth, from left to right. An item is in a column to the right of all
// items that it reads from. The lanes are its rows: a longest path lies in lane 0, at the bottom;
// branches, and lines that pass by boxes, have lanes above.

/** A box of the graph. */
export interface Item {
  reads: number[]; // indices of earlier items
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
  centers: [number, number][]; // of the items
  edges: Edge[];
}

const mostLanes = 16; // a line for which no lane is free lies over others
const lineLane = 9; // height of a lane that holds lines only

/** Lays out items, with gaps of the given sizes: across between columns, up between lanes. */
export function layout(items: Item[], across: number, up: number): Layout {
  const column = columns(items);
  const lanes = new Lanes();
  const lane = placeItems(items, column, lanes);
  const edges = items
    .flatMap(({ reads }, to) => reads.map((from) => ({ from, to, span: column[to] - column[from] })))
    .sort((a, b) => a.span - b.span);
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
    heights[l] = Math.max(heights[l] ?? 0, lineLane);
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

// columns are the lengths of the longest paths to the items.
function columns(items: Item[]): number[] {
  const out: number[] = [];
  for (const { reads } of items) out.push(reads.reduce((most, r) => Math.max(most, out[r] + 1), 0));
  return out;
}

// placeItems puts a longest path into lane 0 and each other item into the lane of what it reads, or
// the lowest free one.
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

/** What takes each lane of each column: a box (-1), or the lines from an item. */
class Lanes {
  private readonly taken = new Map<string, number>();

  take(column: number, lane: number, by: number): void {
    this.taken.set(`${column} ${lane}`, by);
  }

  isFree(column: number, lane: number, by: number): boolean {
    const taken = this.taken.get(`${column} ${lane}`);
    return taken === undefined || (by >= 0 && taken === by);
  }

  /** Takes the lowest lane that is free in several columns for lines from an item. */
  free(first: number, last: number, from: number): number {
    for (let lane = 0; lane < mostLanes; lane++) {
      let free = true;
      for (let c = first; c <= last && free; c++) free = this.isFree(c, lane, from);
      if (!free) continue;
      for (let c = first; c <= last; c++) this.take(c, lane, from);
      return lane;
    }
    return mostLanes;
  }
}

const at = ([x, y]: [number, number]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// curve leaves and arrives horizontally.
function curve(from: [number, number], to: [number, number]): string {
  if (from[1] === to[1]) return `L${at(to)}`;
  const middle = (from[0] + to[0]) / 2;
  return `C${at([middle, from[1]])} ${at([middle, to[1]])} ${at(to)}`;
}
