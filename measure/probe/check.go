package probe

import (
	"maps"
	"slices"

	"github.com/noether-ml/noether/measure/procedure"
)

// known are the names that can stand for a factor of a job's data.
func known(j *procedure.Job) []string {
	names := slices.Clone(j.Data.Factors())
	if j.Data.Classes() != nil && !slices.Contains(names, Label) {
		names = append(names, Label)
	}
	return names
}

// unknown is the first of some words that is no factor of a job's data, as an error.
func unknown(j *procedure.Job, words []string, elsewhere bool, key ...string) error {
	names := known(j)
	for _, w := range words {
		if !slices.Contains(names, w) {
			return &procedure.Unknown{Key: key, What: "factor", Word: w, Known: names, Elsewhere: elsewhere}
		}
	}
	return nil
}

// has checks the factors that the targets name.
func (t *Targets) has(j *procedure.Job) error {
	if err := unknown(j, t.Factors, false, "factors"); err != nil {
		return err
	}
	if err := unknown(j, t.Classes, true, "classes"); err != nil {
		return err
	}
	return unknown(j, slices.Sorted(maps.Keys(t.Scale)), true, "scale")
}

// has checks what names the test samples and those that choose the epoch.
func (t *Training) has(j *procedure.Job) error {
	if err := t.Test.has(j, "test"); err != nil {
		return err
	}
	return t.Validation.has(j, "validation")
}

// has checks the factor of a part, and the names of its values.
func (p *Part) has(j *procedure.Job, key string) error {
	if p.Factor == "" {
		return nil
	}
	if err := unknown(j, []string{p.Factor}, false, key, "factor"); err != nil {
		return err
	}
	names := p.categories(j.Data)
	for _, name := range p.Names {
		if !slices.Contains(names, name) {
			return &procedure.Unknown{Key: []string{key, "names"}, What: p.Factor, Word: name, Known: names}
		}
	}
	return nil
}

// Check implements procedure.Checker.
func (m *informativeness) Check(j *procedure.Job) error {
	if err := m.settings.Targets.has(j); err != nil {
		return err
	}
	return m.settings.Training.has(j)
}

// Check implements procedure.Checker.
func (m *disentanglement) Check(j *procedure.Job) error {
	return (&informativeness{m.settings}).Check(j)
}

// Check implements procedure.Checker.
func (m *parameterEquivariance) Check(j *procedure.Job) error { return m.settings.Training.has(j) }

// Check implements procedure.Checker.
func (m *representationEquivariance) Check(j *procedure.Job) error { return m.settings.Training.has(j) }
