package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// addCleanTransformed adds a cell that compares each layer on x with the same layer on T(x), with a
// task for each part into which the grid is split.
func (p *Plan) addCleanTransformed(m *Model, d *Data, v View, comparison measure.Comparison) {
	c := &Cell{Model: m, Data: d, View: v, Method: comparison}
	if v.Name == "" {
		p.skip(c, "", "the study has no transformation; set between to compare models, or the layers of one model")
		return
	}
	var layers []tensor.Layer
	for _, layer := range m.layers {
		if why := v.activationSkip(layer); why != "" {
			p.skip(c, layer.Name, why)
			continue
		}
		layers = append(layers, layer)
	}
	whole := gridTarget{comparison: comparison, sides: [2]side{{m, false}, {m, true}}}
	whole.grid = p.grid(c, layers, layers, diagonal(len(layers)))
	p.addGrid(c, whole)
}

// addBetween compares layers of a with layers of b, both on T(x), or on x without a transformation.
// a and b may be the same model.
func (p *Plan) addBetween(a, b *Model, d *Data, v View, spec spec.MeasureSpec) error {
	comparison := spec.Method.(measure.Comparison)
	c := &Cell{Model: a, other: b, Data: d, View: v, Method: comparison}
	if v.On == "activations" {
		p.skip(c, "", "a transformation of activations does not apply between models")
		return nil
	}
	layersA, layersB, pairs, err := pairLayers(spec, a, b)
	if err != nil {
		return err
	}
	transformed := v.Name != ""
	whole := gridTarget{comparison: comparison, sides: [2]side{{a, transformed}, {b, transformed}}, named: true}
	whole.grid = p.grid(c, layersA, layersB, pairs)
	whole.grid.Self = a == b
	// Directional: the scores of (i, j) differ from those of (j, i).
	if whole.grid.Self && !comparison.Directional() {
		whole.mirror = true
		whole.grid.Pairs = upperTriangle(pairs)
	}
	p.addGrid(c, whole)
	return nil
}

// pairs are indices in a and b.
func (p *Plan) grid(c *Cell, a, b []tensor.Layer, pairs [][2]int) measure.Grid {
	return measure.Grid{A: a, B: b, Pairs: pairs, Layout: c.Data.Layout, Budget: int64(p.Study.Memory), Key: p.key(c)}
}

func upperTriangle(pairs [][2]int) [][2]int {
	var out [][2]int
	for _, p := range pairs {
		if p[0] <= p[1] {
			out = append(out, p)
		}
	}
	return out
}

// addGrid adds the tasks of a grid and skips pairs that cannot be compared. The rest is split into
// grids that share no layer, then until each fits the memory bound or is a single pair.
func (p *Plan) addGrid(c *Cell, whole gridTarget) {
	all := whole.grid
	whole.grid.Pairs = nil
	skipped := map[string][][2]int{}
	var reasons []string
	for _, pair := range all.Pairs {
		if why := whole.comparison.Skip(subgrid(all, [][2]int{pair})); why != "" {
			if skipped[why] == nil {
				reasons = append(reasons, why)
			}
			skipped[why] = append(skipped[why], pair)
			continue
		}
		whole.grid.Pairs = append(whole.grid.Pairs, pair)
	}
	for _, why := range reasons {
		p.skip(c, describePairs(all, skipped[why], whole.named), why)
	}
	c.order = map[[2]string]int{} // the rank of each pair in the order of scores, from 1
	for i := range whole.grid.A {
		for j := range whole.grid.B {
			if names := whole.names(i, j); c.order[names] == 0 {
				c.order[names] = len(c.order) + 1
			}
		}
	}
	for _, part := range components(whole.grid) {
		for _, g := range splitGrid(whole.comparison, part, int64(p.Study.Memory)) {
			target := whole
			target.grid = g
			cost := whole.comparison.Cost(g) // all in memory, nothing in a file, so both costs are equal
			c.Tasks = append(c.Tasks, &Task{target: &target, Cell: c, cost: cost, FullCost: cost})
		}
	}
	p.add(c)
}

// describePairs names the first three of the pairs, or returns "" if these are all of the grid.
// With named it names the layers of both sides.
func describePairs(g measure.Grid, pairs [][2]int, named bool) string {
	if len(pairs) == len(g.Pairs) {
		return ""
	}
	var names []string
	for _, p := range pairs[:min(len(pairs), 3)] {
		name := g.A[p[0]].Name
		if named {
			name += " and " + g.B[p[1]].Name
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if len(pairs) > 3 {
		text += fmt.Sprintf(" and %d more", len(pairs)-3)
	}
	return text
}

// A gridTarget compares layers grid.A of sides[0] with layers grid.B of sides[1].
type gridTarget struct {
	comparison measure.Comparison
	grid       measure.Grid
	sides      [2]side
	mirror     bool // the scores of (i, j) are also those of (j, i)
	named      bool // scores name the layers of both sides, not only of the first
}

type side struct {
	model       *Model
	transformed bool
}

func (g *gridTarget) names(i, j int) [2]string {
	if !g.named {
		return [2]string{g.grid.A[i].Name, ""}
	}
	return [2]string{g.grid.A[i].Name, g.grid.B[j].Name}
}

// Name returns a hash of the pairs, which names the task in the files of states. An index would not
// do: the split depends on costs that another version may change.
func (g *gridTarget) Name() string {
	sum := sha256.Sum256([]byte(strings.Join(g.depends(), "\n")))
	return "grid " + hex.EncodeToString(sum[:6])
}

func (g *gridTarget) Depth() int { return g.grid.A[0].Depth }

// LayerCount returns the number of pairs with scores, (j, i) counted too if mirror is set.
func (g *gridTarget) LayerCount() int {
	n := len(g.grid.Pairs)
	if g.mirror {
		for _, p := range g.grid.Pairs {
			if g.names(p[0], p[1]) != g.mirrored(p[0], p[1]) {
				n++
			}
		}
	}
	return n
}

// mirrored names the pair (j, i), whose scores are those of (i, j) if mirror is set.
func (g *gridTarget) mirrored(i, j int) [2]string {
	return [2]string{g.grid.B[j].Name, g.grid.A[i].Name}
}

func (g *gridTarget) depends() []string {
	var out []string
	for _, p := range g.grid.Pairs {
		a, b := g.grid.A[p[0]], g.grid.B[p[1]]
		out = append(out, a.Name+" "+string(a.Axes)+" "+b.Name+" "+string(b.Axes))
	}
	return out
}

func (g *gridTarget) models() [2]*Model { return [2]*Model{g.sides[0].model, g.sides[1].model} }

func (g *gridTarget) Readings() []Reading {
	var out []Reading
	for s, layers := range [][]tensor.Layer{g.grid.A, g.grid.B} {
		for _, l := range layers {
			out = append(out, Reading{g.sides[s].model, l, g.sides[s].transformed})
		}
	}
	return out
}

func (g *gridTarget) Open(measure.Store) (Accumulator, error) {
	acc, err := g.comparison.New(g.grid)
	return &gridAccumulator{GridAccumulator: acc, target: g}, err
}

func (g *gridTarget) where(err error) string {
	var bad *measure.NonFiniteIn
	if errors.As(err, &bad) {
		layers := [][]tensor.Layer{g.grid.A, g.grid.B}[bad.Side]
		if bad.Layer >= 0 && bad.Layer < len(layers) {
			return fmt.Sprintf("layer %s of model %s", layers[bad.Layer].Name, g.sides[bad.Side].model.Entry.Name)
		}
	}
	if a, b := g.sides[0].model, g.sides[1].model; a != b {
		return fmt.Sprintf("%s of models %s and %s", g.comparison.Name(), a.Entry.Name, b.Entry.Name)
	}
	return fmt.Sprintf("%s of model %s", g.comparison.Name(), g.sides[0].model.Entry.Name)
}
