package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Mark is the way in which a chart draws rows of scores.
type Mark string

const (
	LineMark Mark = "line" // curves with points, interval bands and a dotted null, chance level
	BarMark  Mark = "bar"  // horizontal bars with a line for the interval and a tick at the null
	TileMark Mark = "tile" // tiles in the colours of their values
	StepMark Mark = "step" // histograms
)

// A Chart describes a kind of chart as data: its mark, fields and texts. The report page and
// package figure draw it. In Titled and Untitled, {statistic}, {panel}, {layer}, {down} and
// {across} are replaced by their values.
type Chart struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Mark  Mark   `json:"mark"`
	// Table is "scores", "bins" of histograms, "ranks" of a layer's units, or "steps" of tuning
	// curves.
	Table    string `json:"table"`
	X        Axis   `json:"x"`
	Y        Axis   `json:"y"`
	Relative *Axis  `json:"relative,omitempty"` // horizontal axis of relative depth
	// RelativeFirst says that depth is relative, from 0 to 1, unless a reader chooses otherwise.
	RelativeFirst bool    `json:"relativeFirst,omitempty"`
	Colour        []Field `json:"colour"`          // fields for colours, in order of preference
	Spread        []Field `json:"spread"`          // fields that the axes show, and so neither colours nor panels
	Sides         []Sides `json:"sides,omitempty"` // fields for the axes, in order of preference
	// Titles of a panel: with and without values of the fields that divide panels.
	Titled   string `json:"titled"`
	Untitled string `json:"untitled"`
	Wide     bool   `json:"wide,omitempty"`   // a panel has the full width of the page
	Common   bool   `json:"common,omitempty"` // panels share the range of values
	Legend   string `json:"legend,omitempty"` // "" if there is none, "page", or "chart" for one in each panel
	Null     string `json:"null,omitempty"`   // the legend's note on the null
	Missing  string `json:"-"`                // why a figure has no rows

	Reading []ReadingPart `json:"reading"` // the sentence that says how to read the chart
	// Statements is the kind of sentences below the chart, or "text" if the rows have their own.
	Statements string `json:"statements"`
	Texts      int    `json:"texts,omitempty"` // maximum number of these sentences
}

// An Axis describes an axis. The title may hold {statistic} and {item} ("sample" or "unit").
type Axis struct {
	Field   Field  `json:"field"`
	End     Field  `json:"end,omitempty"` // if a mark spans an interval, its end; Field is its start
	Title   string `json:"title"`
	Percent bool   `json:"percent,omitempty"` // labels are percentages
	Free    bool   `json:"free,omitempty"`    // the range need not include 0
}

// Sides are the fields of the vertical and the horizontal axis of bars and tiles.
type Sides struct {
	Down   Field `json:"down"`
	Across Field `json:"across,omitempty"` // "" for bars
}

// curveColours are the fields for the colours of curves and bars, in order of preference.
var curveColours = []Field{"model", "transform", "parameter", "data", "variant", "factor"}

// The charts of score rows.
var (
	DepthChart = Chart{Name: "depth", Title: "Over depth", Mark: LineMark, Table: "scores",
		X: Axis{Field: "depth", Title: "depth of the layer"}, Y: Axis{Field: "value", Title: "{statistic}"},
		Relative: &Axis{Field: "relative", Title: "relative depth, first to last layer", Percent: true},
		Colour:   curveColours, Spread: []Field{"layer"}, Titled: "{panel}", Untitled: "{statistic}",
		Legend: "page", Null: "dotted: the null, what chance gives", Reading: curveReading, Statements: CurveStatement,
		Missing: "no measure here is one of layers"}
	ParameterChart = Chart{Name: "parameter", Title: "By parameter", Mark: LineMark, Table: "scores",
		X: Axis{Field: "parameter", Title: "value of the parameter"}, Y: Axis{Field: "value", Title: "{statistic}"},
		Colour: []Field{"model", "data", "variant", "factor"}, Spread: []Field{"parameter"}, Titled: "{panel}", Untitled: "{statistic}",
		Legend: "page", Null: "dotted: the null, what chance gives", Reading: curveReading, Statements: CurveStatement,
		Missing: "no transformation here has a list of numbers"}
	ConfidenceChart = Chart{Name: "confidence", Title: "By confidence", Mark: LineMark, Table: "scores",
		X: Axis{Field: "confidence", Title: "least confidence"}, Y: Axis{Field: "value", Title: "{statistic}"},
		Colour: []Field{"model", "transform", "parameter", "data", "variant"}, Spread: []Field{"factor"}, Titled: "{panel}", Untitled: "{statistic}",
		Legend: "page", Null: "dotted: the null, what chance gives", Reading: curveReading, Statements: CurveStatement,
		Missing: "dense-equivariance alone has scores by confidence"}
	BarsChart = Chart{Name: "bars", Title: "Bars", Mark: BarMark, Table: "scores",
		X: Axis{Field: "value", Title: "{statistic}"}, Colour: curveColours, Sides: barSides,
		Titled: "{statistic} {panel} by {down}", Untitled: "{statistic} by {down}", Wide: true,
		Legend: "page", Null: "a tick alone: the null, what chance gives", Reading: barReading, Statements: ExtremesStatement}
	HeatChart = Chart{Name: "heat", Title: "Heat map", Mark: TileMark, Table: "scores", Sides: tileSides,
		Titled: "{panel}", Untitled: "{down} by {across}", Reading: tileReading, Statements: ExtremesStatement}
	DistributionChart = Chart{Name: "distribution", Title: "Distribution", Mark: StepMark, Table: "bins",
		X: Axis{Field: "from", End: "to", Title: "{statistic}", Free: true}, Y: Axis{Field: "share", Title: "share of {item}s", Percent: true},
		Colour: []Field{"model", "transform"}, Titled: "{panel}", Untitled: "{statistic}",
		Legend: "page", Reading: distributionReading, Statements: "text", Texts: 3}
	unitsChart = Chart{Name: "units", Title: "Units by layer", Mark: TileMark, Table: "ranks",
		X: Axis{Field: "layer", Title: "depth of the layer"}, Y: Axis{Field: "from", End: "to", Title: "units, the highest above", Percent: true},
		Spread: []Field{"layer", "variant", "parameter"}, Titled: "{panel}", Untitled: "{statistic}",
		Reading: unitsReading, Statements: "text", Texts: 1}
	tuningChart = Chart{Name: "tuning", Title: "Tuning curves", Mark: LineMark, Table: "steps",
		X: Axis{Field: "amount", Title: "how far the input is moved"}, Y: Axis{Field: "value", Title: "activation", Free: true},
		Colour: []Field{"unit"}, Spread: []Field{"variant", "parameter"}, Titled: "{panel} {layer}", Untitled: "{layer}",
		Legend: "chart", Reading: tuningReading, Statements: "text", Texts: 1}
)

// FigureCharts are the charts that package figure also draws.
var FigureCharts = []Chart{DepthChart, ParameterChart, ConfidenceChart, BarsChart, HeatChart, DistributionChart}

// Bars of probes show models or layers, with panels for factors and transformations.
var (
	barSides      = []Sides{{Down: "transform"}, {Down: "factor"}, {Down: "data"}, {Down: "variant"}, {Down: "parameter"}, {Down: "model"}, {Down: "layer"}}
	probeBarSides = []Sides{{Down: "model"}, {Down: "layer"}, {Down: "factor"}, {Down: "transform"}, {Down: "data"}, {Down: "variant"}, {Down: "parameter"}}
)

// Layers by layers come before models by models, both before most others. Factor and transformation
// by parts of the range come first, as in Figure 8 of Plachouras et al. 2025.
var tileSides = []Sides{
	{"pair", "part"}, {"layer", "other"}, {"reference", "compared"}, {"factor", "transform"}, {"layer", "transform"}, {"layer", "parameter"},
	{"layer", "model"}, {"factor", "layer"}, {"model", "transform"}, {"model", "factor"}, {"model", "data"}, {"data", "transform"},
	{"variant", "transform"}, {"factor", "parameter"}, {"model", "parameter"},
}

// ChartsOf returns the charts that suit a measure's rows and attachments, the preferred one first.
func ChartsOf(m measure.Descriptor, rows []scores.Row, a Attachments) []Chart {
	var own []scores.Row
	for _, r := range OverTrials(rows) {
		if r.Measure == m.Name {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return nil
	}
	measures, layered, grid := Measures{m}, Layered(rows, m.Name), isGrid(own)
	bars, heat := BarsChart, HeatChart
	if m.Probes {
		bars.Sides, bars.Titled, bars.Wide, bars.Common = probeBarSides, "{panel}", false, true
		bars.Colour = []Field{"variant", "model", "transform", "parameter", "data", "factor"}
	}
	bars.Sides = slices.DeleteFunc(slices.Clone(bars.Sides), func(s Sides) bool { return s.Down == "layer" && !layered })
	heat.Sides = slices.DeleteFunc(slices.Clone(heat.Sides), func(s Sides) bool { return !s.suit(measures, own, layered, grid) })
	layersOfUnits := map[string]bool{}
	for _, d := range a.Distributions {
		if d.Measure == m.Name && d.Of == "unit" {
			layersOfUnits[d.Layer] = true
		}
	}
	var out []Chart
	add := func(c Chart, suits bool) { // adds the chart if it suits
		if suits {
			out = append(out, c)
		}
	}
	depth := DepthChart
	depth.RelativeFirst = DepthsDiffer(own)
	add(depth, layered && !grid && Field("layer").varies(measures, own))
	add(bars, true)
	add(ParameterChart, Field("parameter").varies(measures, withParameter(own)))
	add(ConfidenceChart, slices.ContainsFunc(own, func(r scores.Row) bool { return !math.IsNaN(Confidence(&r)) }))
	add(heat, len(heat.Sides) > 0)
	distribution := DistributionChart
	for _, o := range a.Omitted {
		if o.Measure == m.Name {
			distribution.Reading = append(slices.Clip(distribution.Reading), ReadingPart{Text: " " + o.String() + "."})
		}
	}
	add(distribution, slices.ContainsFunc(a.Distributions, func(d Distribution) bool { return d.Measure == m.Name }))
	add(unitsChart, len(layersOfUnits) > 1)
	add(tuningChart, slices.ContainsFunc(a.Curves, func(c TuningCurve) bool { return c.Measure == m.Name }))
	first := m.Chart // the name of the chart to be shown first
	if first == "" && !Layered(rows, m.Name) && mostlyCurves(own) {
		first = ParameterChart.Name // means over the values say little
	}
	if grid || everyFactor(own) && Field("factor").varies(measures, own) && Field("name").varies(measures, own) {
		first = heat.Name
	}
	slices.SortStableFunc(out, func(x, y Chart) int {
		switch first {
		case x.Name:
			return -1
		case y.Name:
			return 1
		}
		return 0
	})
	return out
}

// mostlyCurves reports whether more than half of the transformations have scores at several values
// that are numbers.
func mostlyCurves(rows []scores.Row) bool {
	first, curves := map[identity]string{}, map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if _, err := strconv.ParseFloat(r.Parameter, 64); err != nil {
			continue
		}
		if known, seen := first[curveOf(r)]; seen && known != r.Parameter {
			curves[r.Transform] = true
		}
		first[curveOf(r)] = r.Parameter
	}
	return 2*len(curves) > len(scores.DistinctValues(rows, byTransform))
}

// HeatSides returns the first sides of a heat map that suit rows, by default models and
// transformations. Factors are a side only if no row is over all samples.
func HeatSides(rows []scores.Row, measures Measures) Sides {
	layered := slices.ContainsFunc(measures, func(m measure.Descriptor) bool { return Layered(rows, m.Name) })
	for _, s := range tileSides {
		own := Overview(rows)
		if s.Down == "pair" {
			own = OverTrials(rows)
		}
		if s.suit(measures, own, layered, isGrid(own)) && (s.Down != "factor" && s.Across != "factor" || everyFactor(own)) {
			return s
		}
	}
	return Sides{"model", "transform"}
}

// layered: rows are of layers (see Layered); grid: layers are compared with several (see isGrid).
func (s Sides) suit(measures Measures, rows []scores.Row, layered, grid bool) bool {
	switch {
	case s.Down == "pair":
		return !slices.ContainsFunc(measures, func(m measure.Descriptor) bool { return !m.Probes }) && inParts(rows)
	case s.Across == "other":
		return grid
	case s.Across == "compared":
		if slices.ContainsFunc(rows, func(r scores.Row) bool { return r.OtherModel == "" }) {
			return false
		}
	case !layered && (s.Down == "layer" || s.Across == "layer"):
		return false
	}
	withoutValue := func(f Field) Field { // a side of transformations needs several of them, not only several values of one
		if f == "transform" {
			return "name"
		}
		return f
	}
	return withoutValue(s.Down).varies(measures, rows) && withoutValue(s.Across).varies(measures, rows)
}

func inParts(rows []scores.Row) bool {
	parts := slices.DeleteFunc(withParameter(rows), func(r scores.Row) bool { return r.Factor == "" })
	return Field("parameter").varies(nil, parts) && (Field("factor").varies(nil, parts) || Field("name").varies(nil, parts))
}

func withParameter(rows []scores.Row) []scores.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Parameter == "" })
}

// everyFactor reports whether every row is limited to a factor, so that none is over all samples.
func everyFactor(rows []scores.Row) bool {
	return !slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Factor == "" })
}
