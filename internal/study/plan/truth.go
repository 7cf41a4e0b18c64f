package plan

import (
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
)

// hasTruth reports whether the samples have labelled boxes or masks.
func (d *Data) hasTruth() bool {
	_, ok := dataset.TruthClasses(d.Source)
	return ok
}

// truth describes the labelled boxes or masks of the data, with the class of a model's decoded
// output (boxes or a map of classes, in the format f) for each of their classes. It returns an
// error if the classes cannot be matched.
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
