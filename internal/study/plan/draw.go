package plan

import (
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// Draw returns the transformation of a sample under a view. With per: trial all samples of a trial
// share its parameters, but not noise. A listed value does not enter the seed, so all values of a
// list use the same noise.
func (p *Pass) Draw(v View, index int) transform.Op {
	key := measure.Key{Seed: p.Seed, Data: p.Data().Entry.Name, Transform: v.Name, Trial: v.Trial}
	return procedure.Draw(v.Transform, v.Per == "trial", key, index)
}

// drawn returns the parameters that all samples of a trial share, or "" if there are none or the
// value is listed.
func (v View) drawn(key measure.Key) string {
	t := v.Transform
	if all := v.allValues; all != nil && len(all.Values) == 1 {
		t = all.Values[0].Transform
	}
	if t == nil || v.Per != "trial" || v.Parameter != "" {
		return ""
	}
	return transform.DescribeRandom(t, procedure.Draw(t, true, key, 0))
}
