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

var (
	errEmpty  = errors.New("no score to draw")
	errPanels = errors.New("too many panels")
)

// A group holds the rows of one panel, divided by colour.
type group struct {
	title     string
	statistic measure.StatisticDescriptor
	series    []member
}

// A member is a series of a panel: the rows that have one colour.
type member struct {
	name  string // value of the field that colours show
	place int    // index in split.names
	look  look   // colour, marker and dashes
	rows  []scores.Row
}

// A split assigns rows to panels and series.
type split struct {
	measures  report.Measures
	colour    Field
	names     []string // names of the colours, in order of appearance
	highlight int      // index of the only name with a colour; -1 if each has one
	each      int      // number of panels of each value of the first field of panels, such as a model; 1 if they differ
	groups    []group
}

// divide divides rows by the fields of order in which they differ: by colour if the field is that
// of o.Colour, or else the first such field, and by panel for the others. The chart's axes show the
// fields in keep, by which rows are not divided.
func divide(rows []scores.Row, o Options, order []Field, keep ...Field) (*split, error) {
	if len(rows) == 0 {
		return nil, errEmpty
	}
	var err error
	var differing []Field
	for _, f := range order {
		if !slices.Contains(keep, f) && len(f.Distinct(o.measures, rows)) > 1 {
			differing = append(differing, f)
		}
	}
	s := &split{measures: o.measures, colour: o.Colour, highlight: -1}
	if o.Chart == Heat { // colours show values
		s.colour = ""
	} else if s.colour == "" {
		for _, f := range differing {
			// Statistics differ in scale, so they are preferably assigned to panels.
			if f != "statistic" && f != o.Panel {
				s.colour = f
				break
			}
		}
	}
	var panels []Field
	for _, f := range differing {
		if f != s.colour {
			panels = append(panels, f)
		}
	}
	if o.Panel != "" && !slices.Contains(panels, o.Panel) {
		panels = append(panels, o.Panel)
	}
	if s.colour == "" {
		s.names = []string{""}
	} else {
		s.names = s.colour.Distinct(o.measures, rows)
	}
	if s.highlight, err = highlighted(s.names, o.Highlight); err != nil {
		return nil, err
	}
	return s, s.fill(rows, panels)
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
		return 0, fmt.Errorf("there is no %q to highlight: want one of %s", asked, firstNames(names))
	}
	return i, nil
}

// keepTogether returns options with so few panels side by side that those of one model, or of
// another value of the first field, do not break across lines, if a line has room for them.
func (s *split) keepTogether(o Options) Options {
	if most := panelsAcross(len(s.groups), o); s.each > 1 && s.each < most {
		o.maxAcross = most - most%s.each
	}
	return o
}

// lookAt returns the look of the name of an index.
func lookAt(i, highlight int) look {
	switch highlight {
	case -1:
		return lookOf(i)
	case i:
		return lookOf(0)
	}
	return greyLook
}

// fill assigns rows to panels, one for each combination of the values of the fields panels.
func (s *split) fill(rows []scores.Row, panels []Field) error {
	at := map[string]int{}
	for _, r := range rows {
		var names, key []string
		for _, f := range panels {
			key = append(key, f.Of(s.measures, &r))
			if name := f.Of(s.measures, &r); f != "statistic" && name != "" {
				names = append(names, name)
			}
		}
		k := strings.Join(key, "\x00")
		i, seen := at[k]
		if !seen {
			i = len(s.groups)
			at[k] = i
			s.groups = append(s.groups, group{title: strings.Join(names, ", "), statistic: s.measures.Statistic(&r)})
		}
		s.groups[i].add(s, r)
	}
	if len(s.groups) > maxPanels {
		return fmt.Errorf("%w: the scores need %d panels, but %d is the maximum: select fewer statistics, transformations or models", errPanels, len(s.groups), maxPanels)
	}
	s.sort(rows, panels)
	return nil
}

// sort puts the panels in the order of their fields, so that those of one model are together, and
// the highlighted series above the others.
func (s *split) sort(rows []scores.Row, panels []Field) {
	places := make([]map[string]int, len(panels))
	for i, f := range panels {
		places[i] = map[string]int{}
		for k, v := range f.Distinct(s.measures, rows) {
			places[i][v] = k
		}
	}
	slices.SortStableFunc(s.groups, func(a, b group) int {
		for i, f := range panels {
			if d := places[i][f.Of(s.measures, &a.series[0].rows[0])] - places[i][f.Of(s.measures, &b.series[0].rows[0])]; d != 0 {
				return d
			}
		}
		return 0
	})
	s.each = 1
	if len(panels) > 1 && len(s.groups) > 0 {
		if values := len(places[0]); len(s.groups)%values == 0 {
			s.each = len(s.groups) / values
		}
	}
	above := func(m member) int {
		if m.place == s.highlight {
			return 1
		}
		return 0
	}
	for _, g := range s.groups {
		slices.SortStableFunc(g.series, func(a, b member) int { return cmp.Or(above(a)-above(b), a.place-b.place) })
	}
}

// add adds a row to the series of its colour.
func (g *group) add(s *split, r scores.Row) {
	name := ""
	if s.colour != "" {
		name = s.colour.Of(s.measures, &r)
	}
	i := slices.IndexFunc(g.series, func(m member) bool { return m.name == name })
	if i < 0 {
		i = len(g.series)
		place := slices.Index(s.names, name)
		g.series = append(g.series, member{name: name, place: place, look: lookAt(place, s.highlight)})
	}
	g.series[i].rows = append(g.series[i].rows, r)
}

// legend returns an entry for each colour.
func (s *split) legend() []entry { return legendOf(s.names, s.highlight) }

// legendOf returns an entry for each name, or for the highlighted one and for all others. clean
// replaces characters that could mislead a reader.
func legendOf(names []string, highlight int) []entry {
	if highlight >= 0 {
		return []entry{{name: clean(names[highlight]), look: lookAt(highlight, highlight)}, {name: fmt.Sprintf("%d others", len(names)-1), look: greyLook}}
	}
	var out []entry
	for i, name := range names {
		out = append(out, entry{name: clean(cmp.Or(name, "none")), look: lookOf(i)})
	}
	return out
}

// ownAxes reports whether the panels show different statistics, each with its own value axis.
func (s *split) ownAxes() bool {
	return slices.ContainsFunc(s.groups, func(g group) bool { return g.statistic.Name != s.groups[0].statistic.Name })
}

// firstNames joins the first few names.
func firstNames(names []string) string {
	if len(names) > 5 {
		names = append(slices.Clone(names[:5]), "…")
	}
	return strings.Join(names, ", ")
}

// headlines returns the rows of the statistics that report.Headline and report.AcrossLayers select
// of each measure: those that have a better end and can be compared across layers. The rows of a
// measure with a single statistic all remain.
func headlines(rows []scores.Row, measures report.Measures) []scores.Row {
	keep := map[string]bool{}
	for _, m := range report.Describe(rows, measures) {
		for _, s := range report.AcrossLayers(report.Headline(m)) {
			keep[m.Name+"."+s.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return !keep[r.Measure+"."+r.Statistic] })
}
