package probe

import (
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/procedure"
)

// factorNames returns the names of the factors of a job's data (known properties of the samples,
// such as hue), with Label if the samples have classes.
func factorNames(j *procedure.Job) []string {
	names := slices.Clone(j.Data.Factors())
	if j.Data.Classes() != nil && !slices.Contains(names, Label) {
		names = append(names, Label)
	}
	return names
}

// checkFactors returns an error for the first selected name that is no factor. key is the path of
// the setting. allData: a name may be a factor of other data of the study.
func checkFactors(j *procedure.Job, selected []string, allData bool, key ...string) error {
	names := factorNames(j)
	for _, name := range selected {
		if !slices.Contains(names, name) {
			return &procedure.Unknown{Key: key, What: "factor", Name: name, Known: names, OtherData: allData}
		}
	}
	return nil
}

func (t *Targets) checkNames(j *procedure.Job) error {
	const thisData, allData = false, true // classes and scale may name factors of any data of the study
	if err := checkFactors(j, t.Factors, thisData, "factors"); err != nil {
		return err
	}
	if err := checkFactors(j, t.Classes, allData, "classes"); err != nil {
		return err
	}
	return checkFactors(j, slices.Sorted(maps.Keys(t.Scale)), allData, "scale")
}

func (t *Training) checkNames(j *procedure.Job) error {
	if err := t.Test.checkNames(j, "test"); err != nil {
		return err
	}
	return t.Validation.checkNames(j, "validation")
}

func (p *Part) checkNames(j *procedure.Job, key string) error {
	if p.Factor == "" {
		return nil
	}
	const allData = false
	if err := checkFactors(j, []string{p.Factor}, allData, key, "factor"); err != nil {
		return err
	}
	names := p.categories(j.Data)
	for _, name := range p.Names {
		if !slices.Contains(names, name) {
			return &procedure.Unknown{Key: []string{key, "names"}, What: p.Factor, Name: name, Known: names}
		}
	}
	return nil
}

func (m *informativeness) Check(j *procedure.Job) error {
	if err := m.settings.Targets.checkNames(j); err != nil {
		return err
	}
	return m.settings.Training.checkNames(j)
}

func (m *disentanglement) Check(j *procedure.Job) error {
	return (&informativeness{m.settings}).Check(j)
}

func (m *parameterEquivariance) Check(j *procedure.Job) error {
	return m.settings.Training.checkNames(j)
}

func (m *representationEquivariance) Check(j *procedure.Job) error {
	return m.settings.Training.checkNames(j)
}
