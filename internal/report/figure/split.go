package figure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Field is a property of rows of scores that colours, panels and axes show.
type Field = report.Field

// Limits beyond which a figure is not readable.
const (
	maxColours = 12 // with more series, one is drawn in colour and the others in grey
	maxPanels  = 24
)

var errPanels = errors.New("too many panels")

// A group holds the rows of one panel, divided by colour.
type group struct {
	order     []int // indices of its values of the fields that panels show
	title     string
	statistic measure.StatisticDescriptor
	series    []member
}

// A member is a series of a panel: the rows that have one colour.
type member struct {
	place int // index in split.names
	look  look
	rows  []scores.Row
}

// rows returns the rows of all series.
func (g group) rows() []scores.Row {
	var out []scores.Row
	for _, m := range g.series {
		out = append(out, m.rows...)
	}
	return out
}

// A split assigns rows to panels and series.
type split struct {
	rows      []scores.Row
	names     []string // values of the field that colours show, in order of appearance
	highlight int      // index of the only name with a colour; -1 if each has one
	together  int      // number of panels of each value of the first field of panels, such as a model; 1 if they differ
	groups    []group
}

// fieldOrder is the order in which fields that differ are assigned to colours and panels.
var fieldOrder = []Field{"model", "transform", "data", "variant", "factor", "layer", "statistic", "name"}

// shownWith lists the fields that an axis shows besides its own.
var shownWith = map[Field][]Field{
	"reference": {"model"}, "compared": {"model"}, "depth": {"layer"}, "parameter": {"transform"}, "part": {"transform"},
	"pair": {"factor", "transform", "name"},
}

// divide divides rows by the fields in which they differ and that no axis shows: by colour if the
// field is that of Options.Colour, or else the first such field, and by panel for the others.
func (d *drawing) divide(rows []scores.Row) (*split, error) {
	if len(rows) == 0 {
		return nil, errEmpty
	}
	shown := []Field{d.sides.Down, d.sides.Across}
	if d.chart.Mark == report.LineMark {
		shown = append(shown, d.chart.Spread...)
	}
	for _, f := range slices.Clone(shown) {
		shown = append(shown, shownWith[f]...)
	}
	// With the parameter on an axis, the name of the transformation tells apart what its label does
	// elsewhere.
	if !slices.Contains(shown, "parameter") && !slices.Contains(shown, "part") {
		shown = append(shown, "name")
	}
	colour := d.Colour
	if d.chart.Mark == report.TileMark { // colours show values
		colour = ""
	}
	var panels []Field
	for _, f := range fieldOrder {
		switch {
		case slices.Contains(shown, f) || len(f.Distinct(d.measures, rows)) < 2 || f == colour:
		// Statistics differ in scale, so they are preferably assigned to panels.
		case colour == "" && d.chart.Mark != report.TileMark && f != "statistic" && f != d.Panel:
			colour = f
		default:
			panels = append(panels, f)
		}
	}
	if d.Panel != "" && !slices.Contains(panels, d.Panel) {
		panels = append(panels, d.Panel)
	}
	of := func(r *scores.Row) string { // the name of the colour of a row
		if colour == "" {
			return ""
		}
		return colour.Of(d.measures, r)
	}
	s := &split{rows: rows}
	for i := range rows {
		if name := of(&rows[i]); !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
	}
	var err error
	if s.highlight, err = highlighted(s.names, d.Highlight); err != nil {
		return nil, err
	}
	return s, s.fill(d.measures, panels, of)
}

// highlighted returns the index of the only name that is drawn in colour: the asked one, or the
// first of more than maxColours names. It returns -1 if each has a colour.
func highlighted(names []string, asked string) (int, error) {
	if asked == "" {
		if len(names) > maxColours {
			return 0, nil
		}
		return -1, nil
	}
	i := slices.Index(names, asked)
	if i < 0 {
		first := slices.Clone(names)
		if len(names) > 5 {
			first = append(first[:5], "…")
		}
		return 0, fmt.Errorf("there is no %q to highlight: want one of %s", asked, strings.Join(first, ", "))
	}
	return i, nil
}

// fill assigns rows to panels, one for each combination of the values of the fields panels, in the
// order of these values. of returns the name of the colour of a row.
func (s *split) fill(measures report.Measures, panels []Field, of func(*scores.Row) string) error {
	order := make([]map[string]int, len(panels)) // places of the values of each field
	for i, f := range panels {
		order[i] = places(f.Distinct(measures, s.rows))
	}
	index := map[string]int{} // of a group by its order
	for i := range s.rows {
		r := &s.rows[i]
		var names []string
		var at []int
		for i, f := range panels {
			name := f.Of(measures, r)
			at = append(at, order[i][name])
			if f != "statistic" && name != "" {
				names = append(names, name)
			}
		}
		k, seen := index[fmt.Sprint(at)]
		if !seen {
			k = len(s.groups)
			index[fmt.Sprint(at)] = k
			s.groups = append(s.groups, group{order: at, title: strings.Join(names, ", "), statistic: measures.Statistic(r)})
		}
		s.groups[k].add(*r, slices.Index(s.names, of(r)), s.highlight)
	}
	if len(s.groups) > maxPanels {
		return fmt.Errorf("%w: the scores need %d panels, but %d is the maximum: "+
			"select fewer statistics, transformations or models", errPanels, len(s.groups), maxPanels)
	}
	slices.SortFunc(s.groups, func(a, b group) int { return slices.Compare(a.order, b.order) })
	above := func(m member) int { // the highlighted series lies above the others
		if m.place == s.highlight {
			return 1
		}
		return 0
	}
	for _, g := range s.groups {
		slices.SortFunc(g.series, func(a, b member) int { return cmp.Or(above(a)-above(b), a.place-b.place) })
	}
	s.together = 1
	if len(panels) > 1 && len(s.groups)%len(order[0]) == 0 {
		s.together = len(s.groups) / len(order[0])
	}
	return nil
}

func (g *group) add(r scores.Row, place, highlight int) {
	i := slices.IndexFunc(g.series, func(m member) bool { return m.place == place })
	if i < 0 {
		i = len(g.series)
		g.series = append(g.series, member{place: place, look: lookAt(place, highlight)})
	}
	g.series[i].rows = append(g.series[i].rows, r)
}

// severalStatistics reports whether the panels show different statistics.
func (s *split) severalStatistics() bool {
	return slices.ContainsFunc(s.groups, func(g group) bool { return g.statistic.Name != s.groups[0].statistic.Name })
}
