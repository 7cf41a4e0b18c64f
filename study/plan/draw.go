package plan

import (
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/transform"
)

// Draw picks the Op for a sample. With per: trial all samples of a trial share its parameters, but
// noise is each sample's own. The value of a listed parameter is not part of the key, so a curve
// over values is drawn with the same noise at each.
func (p *Pass) Draw(v View, index int) transform.Op {
	key := measure.Key{Seed: p.Seed, Data: p.Data().Entry.Name, Transform: v.Name, Trial: v.Trial}
	return procedure.Draw(v.Transform, v.Per == "trial", key, index)
}
