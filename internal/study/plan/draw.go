package plan

import (
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// Draw returns the transformation to apply to the sample with the given index under a view (one
// value of a transformation, in one trial, which is a repetition of all random draws). A Pass is
// one reading of the samples. With per: trial in the study file, all samples of a trial share the
// transformation's parameters, but noise is drawn for each sample. The value, if it is one of a
// list in the study, does not enter the seed, so all values of a list use the same noise.
func (p *Pass) Draw(v View, index int) transform.Op {
	key := measure.Key{Seed: p.Seed, Data: p.Data().Entry.Name, Transform: v.Name, Trial: v.Trial}
	return procedure.Draw(v.Transform, v.Per == "trial", key, index)
}

// drawn returns, as text, the random parameters that all samples of a trial share. It returns "" if
// there are none: if they are drawn for each sample, or if the value of the view is one of a list.
func (v View) drawn(key measure.Key) string {
	t := v.Transform
	// allValues holds the values for measures that take all values of a transformation at once.
	if all := v.allValues; all != nil && len(all.Values) == 1 {
		t = all.Values[0].Transform
	}
	if t == nil || v.Per != "trial" || v.Parameter != "" {
		return ""
	}
	return transform.DescribeRandom(t, procedure.Draw(t, true, key, 0))
}
