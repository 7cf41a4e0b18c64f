package serve

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A side is one side of a comparison: a run, or one model of a run.
type side struct {
	run    *run
	model  string // all models if ""
	record scores.Record
	cells  []scores.Cell // with the derived cells
}

// label returns the name of a side for display.
func (s side) label() string {
	if s.model == "" {
		return s.run.name()
	}
	return s.run.name() + ": " + s.model
}

// maxSides is the maximum number of sides in a comparison.
const maxSides = 8

// sides parses the sides of a request: run=ID&run=ID..., or run=ID&model=A&model=B for models of
// one run. Their scores are not read yet.
func (s *Server) sides(r *http.Request) ([]side, error) {
	query := r.URL.Query()
	ids, models := query["run"], query["model"]
	var chosen []side
	switch {
	case len(ids) == 1 && len(models) >= 2:
		for _, m := range models {
			chosen = append(chosen, side{model: m})
		}
	case len(ids) >= 2 && len(models) == 0:
		chosen = make([]side, len(ids))
	default:
		return nil, problemf(http.StatusBadRequest, "choose two or more runs to compare, or one run and two or more of its models")
	}
	if len(chosen) > maxSides {
		return nil, problemf(http.StatusBadRequest, "at most %d can be compared, not %d", maxSides, len(chosen))
	}
	for i := range chosen {
		run, err := s.library.run(ids[min(i, len(ids)-1)])
		if err != nil {
			return nil, err
		}
		chosen[i].run = run
	}
	return chosen, nil
}

// stampOf returns a string that changes with the files of the sides.
func stampOf(sides []side) string {
	var b strings.Builder
	for _, s := range sides {
		b.WriteString(s.run.stamp())
	}
	return b.String()
}

// readSides reads the scores of the sides.
func readSides(sides []side) error {
	for i := range sides {
		if err := sides[i].read(); err != nil {
			return err
		}
	}
	return nil
}

// read reads the record and the cells of the side.
func (s *side) read() error {
	var err error
	if s.record, err = s.run.record(); err != nil {
		return err
	}
	cells, err := s.run.cells(s.record)
	if err != nil {
		return err
	}
	if s.model != "" {
		if !slices.ContainsFunc(s.record.Models, func(m scores.ModelRecord) bool { return m.Name == s.model }) {
			return problemf(http.StatusNotFound, "%s has no model %q", s.run.name(), s.model)
		}
		cells = slices.DeleteFunc(cells, func(c scores.Cell) bool { return c.Model != s.model || c.OtherModel != "" })
	}
	s.cells = scores.Derived(cells, s.record.Failed...)
	return nil
}

// modelRecord returns the record of the model with a name, which the run must have.
func (s side) modelRecord(name string) scores.ModelRecord {
	i := slices.IndexFunc(s.record.Models, func(m scores.ModelRecord) bool { return m.Name == name })
	return s.record.Models[max(0, i)]
}

// A comparison holds the differences between two sides.
type comparison struct {
	A, B        side
	Differences []scores.Difference
	Beyond      int // number of significant differences
	// Layers maps the name of a layer of A to that of the layer of B that it is compared with; nil:
	// layers of the same name are compared.
	Layers map[string]string
}

// compare matches the scores of two sides. Models are matched by name, or directly if each side has
// one.
func compare(a, b side) comparison {
	c := scores.Comparison{SameSamples: scores.SameSamples(a.record, b.record)}
	var layers map[string]string
	switch {
	case a.model != "" && b.model != "":
		c.Models = map[string]string{a.model: b.model}
		b.cells, layers = matchLayers(a.modelRecord(a.model), b.modelRecord(b.model), b.cells)
	case len(a.record.Models) == 1 && len(b.record.Models) == 1:
		c.Models = map[string]string{a.record.Models[0].Name: b.record.Models[0].Name}
		b.cells, layers = matchLayers(a.record.Models[0], b.record.Models[0], b.cells)
	}
	out := comparison{A: a, B: b, Layers: layers, Differences: c.Diff(a.cells, b.cells)}
	slices.SortStableFunc(out.Differences, func(a, b scores.Difference) int { return detail(a.A) - detail(b.A) })
	for _, d := range out.Differences {
		if d.Significant() {
			out.Beyond++
		}
	}
	return out
}

// detail is a sort key of scores: those of whole models come before those of layers, and means over
// the values of a transformation before those of single values.
func detail(r scores.Row) int {
	n := 0
	if r.Layer != "" {
		n += 2
	}
	if r.Parameter != "" {
		n++
	}
	return n
}

// byChance returns the expected number of significant differences if nothing really differed.
func (c comparison) byChance() int { return int(math.Round(scores.ExpectedByChance(c.Differences))) }

// mergeSides merges the rows and the models of all sides into one run. A model whose name occurs in
// two runs gets its run's name as a suffix.
func mergeSides(sides []side) ([]scores.Row, scores.Record) {
	runs := map[string]map[string]bool{} // by model
	for _, s := range sides {
		for _, m := range s.record.Models {
			if runs[m.Name] == nil {
				runs[m.Name] = map[string]bool{}
			}
			runs[m.Name][s.run.id] = true
		}
	}
	var rows []scores.Row
	record := sides[0].record // without what belongs to one run only
	record.Models, record.Data, record.Resolved, record.Used, record.Keys = nil, nil, "", nil, nil
	var names []string
	seen := map[string]bool{}
	for _, s := range sides {
		uniqueName := func(model string) string {
			if len(runs[model]) > 1 {
				return model + " (" + s.run.name() + ")"
			}
			return model
		}
		names = append(names, s.label())
		var sideRows []scores.Row
		for _, c := range s.cells {
			sideRows = append(sideRows, c.Rows(s.record.Study)...)
		}
		for i := range sideRows {
			sideRows[i].Model = uniqueName(sideRows[i].Model)
			if sideRows[i].OtherModel != "" {
				sideRows[i].OtherModel = uniqueName(sideRows[i].OtherModel)
			}
		}
		rows = append(rows, sideRows...)
		if seen[s.run.id] && s.model == "" {
			continue
		}
		for _, m := range s.record.Models {
			if s.model == "" || s.model == m.Name {
				m.Name = uniqueName(m.Name)
				record.Models = append(record.Models, m)
			}
		}
		if !seen[s.run.id] {
			record.Data = append(record.Data, s.record.Data...)
		}
		seen[s.run.id] = true
	}
	record.Study = strings.Join(names, " beside ")
	return rows, record
}
