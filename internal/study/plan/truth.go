package plan

import (
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
)

func (d *Data) hasTruth() bool {
	_, ok := dataset.TruthClasses(d.Source)
	return ok
}

// truth describes the labelled boxes or masks, with their classes in the format f. It is an error
// if the classes cannot be matched.
func (d *Data) truth(f *decoded.Format) (measure.Truth, error) {
	classes, _ := dataset.TruthClasses(d.Source)
	if classes == nil { // the values of masks are the model's classes
		return measure.Truth{Masks: true}, nil
	}
	match, masks := d.Entry.TruthOutputs, dataset.MaskClasses(d.Source) != nil
	if masks {
		match = d.Entry.MaskOutputs
	}
	to, err := match(classes, f)
	if err != nil {
		return measure.Truth{}, d.Entry.AddPosition(err) // with the line in the study file
	}
	return measure.Truth{Masks: masks, Classes: to}, nil
}

// TruthOf returns the class in the format f of each class of the data, nil if they are the same. It
// returns false if the data have no labelled boxes or masks, or if their classes cannot be matched.
func (d *Data) TruthOf(f *decoded.Format) ([]int, bool) {
	if !d.hasTruth() {
		return nil, false
	}
	t, err := d.truth(f)
	return t.Classes, err == nil
}

// TruthName returns the name of a class of the labelled boxes or masks.
func (d *Data) TruthName(class int) string {
	classes, _ := dataset.TruthClasses(d.Source)
	if class < 0 || class >= len(classes) {
		return fmt.Sprint(class)
	}
	return classes[class].Name
}

// warnOfNumbers warns of models whose classes have no names, so that only their order or number says
// which of them the labelled categories are.
func (p *Plan) warnOfNumbers(o Options) {
	warned := map[[2]string]bool{}
	for _, c := range p.Cells {
		m, ok := c.Method.(measure.Measure)
		if !ok || !m.Needs().Truth || c.Data.Entry.Classes != nil {
			continue
		}
		names := [2]string{c.Model.Entry.Name, c.Data.Entry.Name}
		format := decodedFormat(c.Model)
		classes, _ := dataset.TruthClasses(c.Data.Source)
		truth, err := c.Data.truth(format)
		if err != nil || len(truth.Classes) == 0 || format.Names != nil || warned[names] {
			continue
		}
		warned[names] = true
		last := len(classes) - 1
		o.Warnf("data %s: the classes of model %s have no names, so the labels are matched with them by number only: %q is taken for class %d; set classes of the data if it is another",
			names[1], names[0], classes[last].Name, truth.Classes[last])
	}
}
