package procedure

import (
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// A Transform is a transformation of the input with all its values.
type Transform struct {
	Name     string
	Identity string  // identifies the transformation with its settings
	PerTrial bool    // drawn once for a trial (a repetition of all draws); else for each sample
	Values   []Value // one for each value of a listed parameter; without a list a single one
	// Range is that of the parameter of drawn Ops over all Values; nil if it is not numeric.
	Range *transform.Distribution
}

// A Value is a transformation with one listed value or, without a list, as it is. Other parameters
// may be random.
type Value struct {
	Parameter string // the value, as in the column parameter of scores; "" if there is no list
	Transform transform.Transform
}

// ReadyPairs stands for ready-made pairs: T(x) is Sample.Transformed. Its only value has no
// Transform, so Draw must not be called.
var ReadyPairs = &Transform{Name: "pair", Identity: "pair", PerTrial: true, Values: []Value{{}}}

// Draw returns the Op of a value for the sample with the index. The same key, value and index give
// the same Op. All values of a list use the same random numbers.
func (t *Transform) Draw(k measure.Key, value, index int) transform.Op {
	return Draw(t.Values[value].Transform, t.PerTrial, k, index)
}

// Draw returns the Op of a transformation for the sample with the index. If perTrial is set, all
// samples of a trial have the same parameters, but noise is drawn for each (Renew).
func Draw(t transform.Transform, perTrial bool, k measure.Key, index int) transform.Op {
	if !perTrial {
		return t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial, index))
	}
	op := t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial))
	return transform.Renew(op, seed.Rand(k.Seed, "noise", k.Data, k.Transform, k.Trial, index))
}
