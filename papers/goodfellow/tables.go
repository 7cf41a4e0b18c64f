package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

// tables writes the tables of docs/results/firing.md as goodfellow-NAME.csv, those for whose models
// there are scores.
func (p plan) tables() error {
	t, err := p.read("invariance")
	if err != nil {
		return err
	}
	information, err := p.read("mutual-information")
	if err != nil {
		return err
	}
	if t.hasNatural("ridge") {
		if err := p.ridgeTables(t); err != nil {
			return err
		}
	}
	if t.hasNatural("depth") {
		list, err := t.depths()
		if err != nil {
			return err
		}
		if err := p.write("depth", []string{"grid", "depth", "decays of the best network"}, list); err != nil {
			return err
		}
	}
	if t.hasNatural("copies") {
		if err := p.write("copies", []string{"test"}, t.copies()); err != nil {
			return err
		}
	}
	if networks := slices.DeleteFunc(t.belief(), func(n string) bool { return !t.hasNatural(n) }); len(networks) > 0 {
		if err := p.write("cdbn", []string{"test"}, t.beliefTable(networks)); err != nil {
			return err
		}
	}
	if len(information) == 0 {
		return nil
	}
	return p.write("classes", []string{"networks"}, information.classes())
}

// A record is an entry of a table of results.
type record struct {
	keys             []string
	statistic        string // the column
	value, low, high string
}

// plain returns a record without an interval.
func plain(statistic, value string, keys ...string) record {
	return record{keys: keys, statistic: statistic, value: value}
}

// around returns a record of a value and the half-width of its interval, NaN if there is none.
func around(statistic string, value, half float64, digits int, keys ...string) record {
	c := tablefile.Cells(fmt.Sprintf("%%.%df", digits), value, value-half, value+half)
	return record{keys, statistic, c[0], c[1], c[2]}
}

// meanOf returns a record of the mean of independent values.
func meanOf(statistic string, values []float64, digits int, keys ...string) record {
	mean, half := resample.Student(values)
	return around(statistic, mean, half, digits, keys...)
}

// write writes a table in the format that papers/results reads.
func (p plan) write(name string, keys []string, list []record) error {
	rows := [][]string{append(slices.Clone(keys), "statistic", "value", "low", "high")}
	for _, r := range list {
		rows = append(rows, append(slices.Clone(r.keys), r.statistic, r.value, r.low, r.high))
	}
	return tablefile.Write(filepath.Join(p.out, "goodfellow-"+name+".csv"), rows)
}

// trainings returns the scores in a test ("": the mean over the natural tests) of the networks of a
// cell of ridge.onnx. Networks all of whose units are constant are left out.
func (t table) trainings(name, test string) []float64 {
	var out []float64
	for _, l := range t.layers("ridge", func(l string) bool { return strings.HasPrefix(l, name+"/") }) {
		if v := t.of("ridge", l, test); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// ridgeTables writes the tables of figures 1 to 3.
func (p plan) ridgeTables(t table) error {
	if err := p.write("correlations", []string{"scores"}, t.correlations()); err != nil {
		return err
	}
	if err := p.write("cells", []string{"target", "decay"}, t.cells()); err != nil {
		return err
	}
	var cells []record
	for _, target := range targets {
		for _, decay := range ridgeDecays {
			value := ""
			if scores := t.trainings(cell(target, decay), ""); len(scores) > 0 {
				value = fmt.Sprintf("%.1f", stat.Mean(scores, nil))
			}
			cells = append(cells, plain(fmt.Sprint(decay), value, targetName(target)))
		}
	}
	if err := p.write("ridge", []string{"target"}, cells); err != nil {
		return err
	}
	return p.write("rows", []string{"target"}, t.rows())
}

func targetName(target float64) string {
	if target == unpenalised { // trained without the sparsity penalty
		return "none"
	}
	return fmt.Sprint(target)
}

// cells returns the scores of the tests of figures 1 and 2, the means over the networks of each cell
// of the grid of ridge.onnx. Cells all of whose units are constant are left out.
func (t table) cells() []record {
	var list []record
	for _, target := range targets {
		for _, decay := range ridgeDecays {
			for _, c := range titles[1:] {
				if values := t.trainings(cell(target, decay), c.test); len(values) > 0 {
					list = append(list, plain(c.title, fmt.Sprintf("%.2f", stat.Mean(values, nil)), targetName(target), fmt.Sprint(decay)))
				}
			}
		}
	}
	return list
}

// correlations returns the rank correlations of pairs of tests over the cells of the grid of
// ridge.onnx (figures 1 and 2). The rank correlation is that of the means over the networks of a
// cell, with an interval that resamples cells. The statistic "in one training" uses one network of
// each cell; it is the mean over the trainings with its interval.
func (t table) correlations() []record {
	var list []record
	for _, pair := range []struct{ name, x, y string }{
		{"pan and grating phase", "gratings phase", "pan"}, {"clips and grating phase", "gratings phase", "clips"},
		{"clips, 32 other places, and grating phase", "gratings phase", "clips-2"}, {"clips, again 32 others, and grating phase", "gratings phase", "clips-3"},
		{"clips, 16 places, and grating phase", "gratings phase", "clips-16"},
		{"turn and grating orientation", "gratings orientation", "turn"}, {"object and grating orientation", "gratings orientation", "object"},
		{"turn and pan", "pan", "turn"}, {"object and pan", "pan", "object"}, {"object and turn", "turn", "object"},
	} {
		var x, y []float64
		for _, target := range targets {
			for _, decay := range ridgeDecays {
				a, b := t.trainings(cell(target, decay), pair.x), t.trainings(cell(target, decay), pair.y)
				if len(a) > 0 && len(b) > 0 {
					x, y = append(x, stat.Mean(a, nil)), append(y, stat.Mean(b, nil))
				}
			}
		}
		if len(x) < 3 {
			continue
		}
		low, high := resampled(x, y)
		list = append(list, record{[]string{pair.name}, "rank correlation", fmt.Sprintf("%.2f", rank(x, y)), fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)},
			plain("cells", fmt.Sprint(len(x)), pair.name))
		if each := t.correlationOfEachTraining(pair.x, pair.y); len(each) > 1 {
			mean, half := resample.Student(each)
			low, high := max(mean-half, -1), min(mean+half, 1)
			list = append(list, record{[]string{pair.name}, "in one training", fmt.Sprintf("%.2f", mean), fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)})
		}
	}
	return list
}

// correlationOfEachTraining returns, for each training, the rank correlation of two tests over the
// cells.
func (t table) correlationOfEachTraining(first, second string) []float64 {
	var out []float64
	for number := 1; ; number++ {
		var x, y []float64
		for _, target := range targets {
			for _, decay := range ridgeDecays {
				layer := fmt.Sprintf("%s/training%d/layer1", cell(target, decay), number)
				a, b := t.of("ridge", layer, first), t.of("ridge", layer, second)
				if !math.IsNaN(a) && !math.IsNaN(b) {
					x, y = append(x, a), append(y, b)
				}
			}
		}
		if len(x) < 3 {
			return out
		}
		out = append(out, rank(x, y))
	}
}

// rows returns, for each target, the decay that is best in the first training, and the scores at
// no decay, at this decay and at the largest decay, over the other trainings.
func (t table) rows() []record {
	var list []record
	for _, target := range targets {
		best, most := 0.0, math.Inf(-1)
		for _, decay := range ridgeDecays {
			if v := t.mean("ridge", cell(target, decay)+"/training1/layer1"); v > most {
				best, most = decay, v
			}
		}
		others := func(decay float64) []float64 {
			var out []float64
			for _, l := range t.layers("ridge", func(l string) bool { return strings.HasPrefix(l, cell(target, decay)+"/") }) {
				if v := t.mean("ridge", l); !strings.Contains(l, "/training1/") && !math.IsNaN(v) {
					out = append(out, v)
				}
			}
			return out
		}
		key := targetName(target)
		list = append(list, plain("best decay", fmt.Sprint(best), key))
		last := ridgeDecays[len(ridgeDecays)-1]
		for _, c := range []struct {
			name   string
			values []float64
		}{{"score without decay", others(0)}, {"score at the best decay", others(best)}, {fmt.Sprintf("score at decay %g", last), others(last)}} {
			if len(c.values) < 2 {
				list = append(list, plain(c.name, "", key))
				continue
			}
			list = append(list, meanOf(c.name, c.values, 1, key))
		}
	}
	return list
}

// grids are the sets of decays of the stacks of depth.onnx: one near the best of a single layer in
// place of the paper's smallest, and the paper's.
var grids = []struct {
	name string
	lack float64 // the decay that the grid does not have
}{{"with 0.3", 1e-5}, {"of the paper", 0.3}}

// depths returns the scores of the best, the median and the worst network of each depth (figure 5)
// in each grid of decays. Of an even number of networks the median is the better of the two in the
// middle.
func (t table) depths() ([]record, error) {
	var list []record
	for _, g := range grids {
		byDepth, name := make([][]float64, maxLayers), make([]string, maxLayers)
		for _, l := range t.layers("depth", nil) {
			decays, err := stack(l) // the weight decay of each layer up to l
			if err != nil {
				return nil, err
			}
			d, v := len(decays)-1, t.mean("depth", l)
			if math.IsNaN(v) || slices.Contains(decays, g.lack) {
				continue
			}
			if len(byDepth[d]) == 0 || v > slices.Max(byDepth[d]) {
				name[d] = strings.ReplaceAll(strings.TrimPrefix(path(decays), "decays"), ",", ", ")
			}
			byDepth[d] = append(byDepth[d], v)
		}
		for d, values := range byDepth {
			if len(values) == 0 {
				continue
			}
			slices.Sort(values)
			key := []string{g.name, strconv.Itoa(d + 1), name[d]}
			for _, c := range []struct {
				name  string
				value float64
			}{{"best", values[len(values)-1]}, {"median", values[len(values)/2]}, {"worst", values[0]}} {
				list = append(list, plain(c.name, fmt.Sprintf("%.1f", c.value), key...))
			}
			list = append(list, plain("networks", strconv.Itoa(len(values)), key...))
		}
	}
	return list, nil
}

// titles are the mean over the natural tests and the tests, with their names in tables.
var titles = []struct{ test, title string }{
	{"", "natural mean"}, {"clips", "clips"}, {"pan", "pan"}, {"turn", "turn"}, {"orbit", "orbit"}, {"object", "object"}, {"gratings phase", "grating phase"}, {"gratings orientation", "grating orientation"},
}

// copies returns the scores of copies.onnx (figure 5), and the differences between successive
// depths with their p-values.
func (t table) copies() []record {
	var list []record
	for _, c := range titles {
		var before []float64
		for d := 1; d <= maxLayers; d++ {
			var values []float64
			for _, l := range t.layers("copies", func(l string) bool {
				return strings.HasPrefix(l, fmt.Sprintf("depth%d/", d)) && strings.HasSuffix(l, fmt.Sprintf("/layer%d", d))
			}) {
				values = append(values, t.of("copies", l, c.test))
			}
			list = append(list, meanOf(fmt.Sprintf("depth %d", d), values, 1, c.title))
			if before != nil {
				change, half := resample.Welch(before, values)
				list = append(list, around(fmt.Sprintf("depth %d - depth %d", d, d-1), change, half, 1, c.title), plain(fmt.Sprintf("p, depth %d to %d", d-1, d), significance(before, values), c.title))
			}
			before = values
		}
	}
	return list
}

// significance returns the p-value of Welch's t-test of a difference of means; "" if all values are
// equal.
func significance(a, b []float64) string {
	p := welch(a, b)
	switch {
	case math.IsNaN(p):
		return ""
	case p < 1e-60:
		return "< 1e-60"
	case p < 0.01:
		return fmt.Sprintf("%.0e", p)
	}
	return fmt.Sprintf("%.2f", p)
}

// belief returns the names of the belief networks, which have the layers layer1 and layer2.
func (t table) belief() []string {
	var out []string
	for name, layers := range t {
		if layers["layer1"] != nil && layers["layer2"] != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// changesOfThePaper are the changes from layer 1 to layer 2 in table 1 of the paper.
var changesOfThePaper = map[string]string{"gratings phase": "+38 %", "gratings orientation": "+49 %", "pan": "+51 %", "object": "+80 %"}

// beliefTable returns the scores of the two layers of the belief networks (table 1), and the
// change.
func (t table) beliefTable(networks []string) []record {
	var list []record
	for _, c := range titles[1:] {
		var first, second, change []float64
		for _, n := range networks {
			a, b := t.of(n, "layer1", c.test), t.of(n, "layer2", c.test)
			first, second, change = append(first, a), append(second, b), append(change, 100*(b/a-1))
		}
		list = append(list, meanOf("layer 1", first, 1, c.title), meanOf("layer 2", second, 1, c.title),
			meanOf("change in percent", change, 0, c.title), plain("change in the paper", changesOfThePaper[c.test], c.title))
	}
	return list
}

// classes returns the mutual information between the firing of units and classes (section 8), for
// each kind of network. Intervals are over the belief networks; the other networks are grids.
func (t table) classes() []record {
	const test = "cifar10"
	var list []record
	add := func(name string, grid bool, rows []scores.Row) {
		var values, shuffled []float64
		for _, r := range rows {
			if !math.IsNaN(r.Value) {
				values, shuffled = append(values, r.Value), append(shuffled, r.Null)
			}
		}
		if len(values) == 0 {
			return
		}
		mean, half := resample.Student(values)
		if grid {
			half = math.NaN()
		}
		list = append(list, around("mutual information", mean, half, 4, name),
			plain("lowest and highest", fmt.Sprintf("%.4f, %.4f", slices.Min(values), slices.Max(values)), name),
			plain("shuffled labels", fmt.Sprintf("%.4f", stat.Mean(shuffled, nil)), name),
			plain("networks", strconv.Itoa(len(values)), name))
	}
	rows := func(model, suffix string) (out []scores.Row) {
		for _, l := range t.layers(model, func(l string) bool { return strings.HasSuffix(l, suffix) }) {
			out = append(out, t[model][l][test])
		}
		return out
	}
	add("one layer", true, rows("ridge", ""))
	for d := 1; d <= maxLayers; d++ {
		add(fmt.Sprintf("stacks, depth %d", d), true, rows("depth", fmt.Sprintf("/layer%d", d)))
	}
	for _, layer := range []string{"layer1", "layer2"} {
		var belief []scores.Row
		for _, n := range t.belief() {
			belief = append(belief, rows(n, layer)...)
		}
		add("belief networks, "+strings.Replace(layer, "layer", "layer ", 1), false, belief)
	}
	return list
}
