package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/transform"
)

// Passes groups unfinished tasks of one owner into passes whose accumulators fit the limits. Each
// view costs a forward pass per sample, up to the deepest layer that is read, and so does the clean
// input of each pass. Passes takes the division with the least estimated engine time.
func Passes(cells []*Cell, limits Limits, shard Shard) []*Pass {
	var out []*Pass
	groups := groupByView(cells)
	for len(groups) > 0 {
		owner := groups[0].owner
		var owned, rest []*viewTasks
		for _, g := range groups {
			if g.owner == owner {
				owned = append(owned, g)
			} else {
				rest = append(rest, g)
			}
		}
		out = append(out, cheapest(owned, limits, shard)...)
		groups = rest
	}
	return out
}

// MemoryHint returns a sentence on the memory that would give the fewest passes, or "".
func (p *Plan) MemoryHint(o *Options) string {
	passes := Passes(p.Cells, LimitsOf(p.Study, o), o.Shard)
	least := Passes(p.Cells, Limits{math.MaxInt64, o.Workers()}, o.Shard)
	if len(least) >= len(passes) {
		return ""
	}
	var bytes, forwards, fewer int64 // peak memory of least; samples in the forward passes of passes, and of least
	for _, pass := range least {
		bytes = max(bytes, pass.Cost())
		fewer += pass.Forwards()
	}
	for _, pass := range passes {
		forwards += pass.Forwards()
	}
	return fmt.Sprintf("with memory: %dMiB the passes would be %d instead of %d, and the samples through the engine %d instead of %d",
		bytes>>20+1, len(least), len(passes), fewer, forwards)
}

// cheapest compares two kinds of division: all layers of a view together, and, for each depth, the
// layers up to that depth in passes of their own. Early layers have the largest accumulators, and a
// pass for them runs only the beginning of the graph.
func cheapest(groups []*viewTasks, limits Limits, shard Shard) []*Pass {
	best := packAll(groups, limits, shard)
	if len(best) == 1 {
		return best
	}
	least := engineWork(best)
	for _, depth := range depths(groups) {
		early, late := splitByDepth(groups, depth)
		passes := append(packAll(late, limits, shard), packAll(early, limits, shard)...)
		if work := engineWork(passes); work < least*0.99 { // a gain below 1 % is not worth more passes
			best, least = passes, work
		}
	}
	return best
}

func packAll(groups []*viewTasks, limits Limits, shard Shard) (out []*Pass) {
	for _, g := range groups {
		out = pack(out, g, limits, shard)
	}
	return out
}

// depths returns the distinct depths of layers, without the deepest.
func depths(groups []*viewTasks) []int {
	var out []int
	for _, g := range groups {
		for _, t := range g.tasks {
			if t.Depth() >= 0 {
				out = append(out, t.Depth())
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:max(0, len(out)-1)]
}

func splitByDepth(groups []*viewTasks, depth int) (early, late []*viewTasks) {
	for _, g := range groups {
		a, b := &viewTasks{owner: g.owner, view: g.view}, &viewTasks{owner: g.owner, view: g.view}
		for _, t := range g.tasks {
			if t.Depth() >= 0 && t.Depth() <= depth {
				a.tasks = append(a.tasks, t)
			} else {
				b.tasks = append(b.tasks, t)
			}
		}
		if len(a.tasks) > 0 {
			early = append(early, a)
		}
		if len(b.tasks) > 0 {
			late = append(late, b)
		}
	}
	return early, late
}

// engineWork returns the estimated time in forward passes of whole graphs.
func engineWork(passes []*Pass) (sum float64) {
	for _, p := range passes {
		for _, m := range p.Models {
			sum += float64(p.ForwardsOf(m)) * p.graphFraction(m)
		}
	}
	return sum
}

// graphFraction estimates the fraction of the graph that a pass runs, by the depth of its deepest
// layer.
func (p *Pass) graphFraction(m *Model) float64 {
	layers, prediction := p.Layers(m)
	if prediction {
		return 1
	}
	deepest := 0
	for _, l := range layers {
		deepest = max(deepest, l.Depth)
	}
	return float64(1+deepest) / float64(1+max(deepest, m.Net.Depth()))
}

type viewTasks struct {
	owner passOwner
	view  View
	tasks []*Task
}

// groupByView groups unfinished tasks. Trials whose views apply the same operations share a group.
func groupByView(cells []*Cell) []*viewTasks {
	type key struct {
		owner            passOwner
		name, value, per string
		draw             int
	}
	index := map[key]*viewTasks{}
	var order []*viewTasks
	for _, c := range cells {
		k := key{c.owner(), c.View.Name, c.View.Parameter, c.View.Per, c.View.draw()}
		g := index[k]
		if g == nil {
			g = &viewTasks{owner: c.owner(), view: c.View}
			index[k] = g
			order = append(order, g)
		}
		for _, t := range c.Tasks {
			if !c.Done && !c.Failed && t.Scored == nil {
				g.tasks = append(g.tasks, t)
			}
		}
	}
	return slices.DeleteFunc(order, func(g *viewTasks) bool { return len(g.tasks) == 0 })
}

// draw returns the trial of the random draw: 0 for fixed transformations and ready-made pairs, so
// that all their trials share one forward pass.
func (v View) draw() int {
	if v.Transform == nil || !transform.Random(v.Transform) {
		return 0
	}
	return v.Trial
}

// pack adds tasks to the last pass if they fit, else to new ones. A view too large for one pass is
// split by layers.
func pack(out []*Pass, g *viewTasks, limits Limits, shard Shard) []*Pass {
	slices.SortStableFunc(g.tasks, func(a, b *Task) int { return a.Depth() - b.Depth() })
	fits := demandOf(g.tasks).bytes(limits.Cores) <= limits.Memory
	var p *Pass
	if n := len(out); n > 0 && out[n-1].owner == g.owner && out[n-1].packed.plus(demandOf(g.tasks)).bytes(limits.Cores) <= limits.Memory && out[n-1].canRun(g.tasks...) {
		p = out[n-1]
	}
	var used memoryDemand
	for _, t := range g.tasks {
		if p == nil || used.tasks > 0 && (!fits && used.with(t).bytes(limits.Cores) > limits.Memory || !p.canRun(t)) {
			p = &Pass{owner: g.owner, cores: limits.Cores}
			// From lo to Hi (exclusive), in the random order.
			p.lo, p.Hi = shard.Positions(g.owner.data.Layout)
			out = append(out, p)
			used = memoryDemand{}
		}
		if used.tasks == 0 {
			p.Views = append(p.Views, g.view)
			p.Tasks = append(p.Tasks, nil)
		}
		p.add(t)
		used = used.with(t)
	}
	return out
}
