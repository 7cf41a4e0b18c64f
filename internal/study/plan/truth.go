package plan

import (
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
