package plan

import (
	"encoding/json"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/transform"
)

func forEachView(views []View, f func(View) error) error {
	for _, v := range views {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// procedureViews returns one view for each trial and transformation that the procedure takes, with
// all values of it. Ready-made pairs count as a transformation named "pair".
func procedureViews(s *spec.Study, method procedure.Procedure, d *Data) []View {
	bases := []View{{}}
	switch {
	case !method.Needs().Transform, method.Needs().OwnTrajectories && hasTrajectories(d.Source):
	case d.Entry.ReadyPairs():
		bases[0] = View{Name: "pair", On: "input", Per: "trial"}
		if method.Needs().ReadyPairs {
			// ReadyPairs stands for the transformation, which is not known.
			bases[0].allValues = procedure.ReadyPairs
		}
	case len(s.Transforms) > 0:
		bases = bases[:0]
		for _, t := range s.Transforms {
			bases = append(bases, procedureView(&t))
		}
	}
	var out []View
	for _, v := range bases {
		for v.Trial = range s.Trials {
			out = append(out, v)
		}
	}
	return out
}

// hasTrajectories reports whether a source provides variants of each sample itself.
func hasTrajectories(src dataset.Source) bool {
	return dataset.AsGratings(src) != nil || dataset.Amounts(src) != nil
}

func procedureView(t *spec.Transform) View {
	return View{Name: t.Name, On: t.On, Per: t.Per, canonical: json.RawMessage(spec.CanonicalJSON(t.CanonicalForm())), allValues: allValues(t)}
}

// Views returns all values and trials of the study's transformations on a data set, or the zero
// View.
func (p *Plan) Views(d *Data) []View { return views(p.Study, d) }

// views returns all values and trials of the study's transformations, or the zero View. Ready-made
// pairs have one view per trial.
func views(s *spec.Study, d *Data) []View {
	var out []View
	if d.Entry.ReadyPairs() {
		for trial := range s.Trials {
			out = append(out, View{Name: "pair", Trial: trial, On: "input", Per: "trial"})
		}
		return out
	}
	if len(s.Transforms) == 0 {
		return []View{{}}
	}
	for _, t := range s.Transforms {
		for _, c := range t.Cells {
			canonical := json.RawMessage(spec.CanonicalJSON(c.Canonical))
			for trial := range s.Trials {
				out = append(out, View{Name: t.Name, Parameter: c.Parameter, Trial: trial,
					On: t.On, Per: t.Per, Transform: c.Transform, canonical: canonical})
			}
		}
	}
	return out
}

// allValues sets Range to the smallest that holds all values, nil if a value is not a single
// number.
func allValues(t *spec.Transform) *procedure.Transform {
	out := &procedure.Transform{Name: t.Name, Identity: spec.CanonicalJSON(t.CanonicalForm()), PerTrial: t.Per == "trial", Range: t.Cells[0].Number}
	for _, c := range t.Cells {
		out.Values = append(out.Values, procedure.Value{Parameter: c.Parameter, Transform: c.Transform})
		if out.Range != nil && c.Number != nil {
			union := transform.Uniform(min(out.Range.Low, c.Number.Low), max(out.Range.High, c.Number.High))
			out.Range = &union
		} else {
			out.Range = nil
		}
	}
	return out
}
