package figure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// A Field is a property of rows that colours, panels and axes show.
type Field = report.Field

// Limits beyond which a figure is not readable.
const (
	maxColours = 12
	maxPanels  = 24
)

var (
	errEmpty = errors.New("no score to draw")
)

// A group holds the rows of one panel, divided by colour.
type group struct {
	title     string
	statistic measure.StatisticDescriptor
	series    []member
}

type member struct {
	name string
	look int // index in the legend
	rows []scores.Row
}

// A split assigns rows to panels and series.
type split struct {
	measures report.Measures
	colour   Field
	names    []string // names of the colours, in order of appearance
	groups   []group
}

// divide divides rows by the fields in which they differ, the first of them by colour. The fields
// in keep are shown by the chart's axes.
func divide(rows []scores.Row, o Options, order []Field, keep ...Field) (*split, error) {
	if len(rows) == 0 {
		return nil, errEmpty
	}
	var differing []Field
	for _, f := range order {
		if !slices.Contains(keep, f) && len(f.Distinct(o.measures, rows)) > 1 {
			differing = append(differing, f)
		}
	}
	s := &split{measures: o.measures, colour: o.Colour}
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
	if len(s.names) > maxColours {
		return nil, fmt.Errorf("%d values of %s would have a colour each, but %d is the maximum: select fewer (%s)",
			len(s.names), s.colour, maxColours, firstNames(s.names))
	}
	return s, s.fill(rows, panels)
}

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
		return fmt.Errorf("the scores need %d panels, but %d is the maximum: select fewer statistics, transformations or models", len(s.groups), maxPanels)
	}
	for _, g := range s.groups {
		slices.SortStableFunc(g.series, func(a, b member) int { return a.look - b.look })
	}
	return nil
}

func (g *group) add(s *split, r scores.Row) {
	name := ""
	if s.colour != "" {
		name = s.colour.Of(s.measures, &r)
	}
	i := slices.IndexFunc(g.series, func(m member) bool { return m.name == name })
	if i < 0 {
		i = len(g.series)
		g.series = append(g.series, member{name: name, look: slices.Index(s.names, name)})
	}
	g.series[i].rows = append(g.series[i].rows, r)
}

// legend returns an entry for each colour.
func (s *split) legend() []entry {
	var out []entry
	for i, name := range s.names {
		if name == "" {
			name = "none"
		}
		out = append(out, entry{name: clean(name), look: lookOf(i)})
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

// headlines returns the rows of the statistics with a direction, and with bounds if any has them,
// so that they are comparable. Rows of a single statistic are returned unchanged.
func headlines(rows []scores.Row, measures report.Measures) []scores.Row {
	keep := map[string]bool{}
	for _, m := range report.Describe(rows, measures) {
		shown := report.Headline(m)
		bounded := slices.DeleteFunc(slices.Clone(shown), func(s measure.StatisticDescriptor) bool { return !s.Range.Bounded() })
		if len(bounded) > 0 {
			shown = bounded
		}
		for _, s := range shown {
			keep[m.Name+"."+s.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return !keep[r.Measure+"."+r.Statistic] })
}
